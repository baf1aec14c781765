/**
 * The documented errors of the push provider's `messages:send`, and their bodies: `google.rpc.Status` in JSON, with the
 * provider's own detail that names the error.
 */

/** Names of the errors that can be requested. */
export const pushErrors = ['UNREGISTERED', 'INVALID_ARGUMENT', 'SENDER_ID_MISMATCH', 'QUOTA_EXCEEDED', 'UNAVAILABLE', 'INTERNAL'] as const;
export type PushError = (typeof pushErrors)[number];

/** An HTTP answer. */
export interface ProviderAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const DETAIL = 'type.googleapis.com/google.firebase.fcm.v1.FcmError';

const errors: Readonly<Record<PushError, { code: number; status: string; message: string }>> = {
  UNREGISTERED: { code: 404, status: 'NOT_FOUND', message: 'Requested entity was not found.' },
  INVALID_ARGUMENT: {
    code: 400,
    status: 'INVALID_ARGUMENT',
    message: 'The registration token is not a valid FCM registration token',
  },
  SENDER_ID_MISMATCH: { code: 403, status: 'PERMISSION_DENIED', message: 'SenderId mismatch' },
  QUOTA_EXCEEDED: {
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
    message: "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute'",
  },
  UNAVAILABLE: { code: 503, status: 'UNAVAILABLE', message: 'The service is currently unavailable.' },
  INTERNAL: { code: 500, status: 'INTERNAL', message: 'Internal error encountered.' },
};

/** @param retryAfter seconds, for temporary errors */
export function pushError(error: PushError, retryAfter: number | null = null): ProviderAnswer {
  const { code, status, message } = errors[error];
  const body = { error: { code, message, status, details: [{ '@type': DETAIL, errorCode: error }] } };
  return retryAfter === null ? { status: code, body } : { status: code, body, headers: { 'retry-after': String(retryAfter) } };
}

/** 400 for an invalid document. @param field its path, e.g. `message.token` */
export function invalidField(field: string, description: string): ProviderAnswer {
  const details = [
    { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field, description }] },
    { '@type': DETAIL, errorCode: 'INVALID_ARGUMENT' },
  ];
  return { status: 400, body: { error: { code: 400, message: description, status: 'INVALID_ARGUMENT', details } } };
}

/** 401 for a request without a valid access token. */
export function unauthenticated(): ProviderAnswer {
  const message =
    'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.';
  return { status: 401, body: { error: { code: 401, message, status: 'UNAUTHENTICATED' } } };
}

/** 403 for an access token of another project. */
export function permissionDenied(projectId: string): ProviderAnswer {
  const message = `Permission 'cloudmessaging.messages.create' denied on resource '//cloudresourcemanager.googleapis.com/projects/${projectId}' (or it may not exist).`;
  return { status: 403, body: { error: { code: 403, message, status: 'PERMISSION_DENIED' } } };
}

/** 404 for a path that is not served. */
export function notFound(): ProviderAnswer {
  return { status: 404, body: { error: { code: 404, message: 'Requested entity was not found.', status: 'NOT_FOUND' } } };
}
