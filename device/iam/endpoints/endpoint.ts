/**
 * An endpoint as data, and how each is served: its checks in its order, then its answer; an error becomes a status and a short text.
 *
 * The order is the reference's and not uniform (reference §0): what only reads, deletes or sets the device asks policies first; what carries a body
 * about a user reads and checks the body first, so that a bad one is 4.00 whoever sent it; pairing asks for its flag before policies. Whether the user
 * exists is looked at last.
 */
import { type CoapMethod, Status } from '../../../protocol/coap/index.ts';
import { LocalError, SvcError } from '../../../protocol/errors/index.ts';
import { CONTENT_FORMAT_CBOR, type PairingMode } from '../../../protocol/records/index.ts';
import type { DeviceCoapRequest, DeviceCoapResponse } from '../../coap-resources.ts';
import type { Caller, Demand } from '../caller.ts';
import type { Iam } from '../iam.ts';
import type { Attributes } from '../policy.ts';
import type { ChangeRates } from './change-rates.ts';
import type { DeviceFacade } from './device-facade.ts';
import type { PairingRates } from './pairing-rates.ts';
import type { PushTests } from './push-test.ts';

/** `action`: policies, else 4.03. `body`: content format, CBOR, types and lengths, else 4.00. */
export type Check = 'action' | 'body';

/** What the endpoints of one device share. */
export interface IamService {
  readonly iam: Iam;
  readonly device: DeviceFacade;
  readonly pushTests: PushTests;
  readonly pairingRates: PairingRates;
  readonly changeRates: ChangeRates;
}

/** A request on its way through the checks. */
export interface IamRequest<Body> extends IamService {
  readonly caller: Caller;
  /** Of the client, numeric. */
  readonly address: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** What policies allowed: a change of the state demands it again. undefined before they were asked, for what they are not asked for, and for pairing. */
  readonly demand: Demand | undefined;
  /** undefined before it is read, and where none is. */
  readonly body: Body;
}

export interface IamEndpoint<Body = unknown> {
  readonly method: CoapMethod;
  /** With `{name}` segments. */
  readonly path: string;
  /** What policies are asked for; everybody may do what has none. */
  readonly action?: string;
  /** Pairing: policies are asked together with everything else this mode depends on. */
  readonly pairing?: PairingMode;
  /** What policies learn of the request. */
  readonly attributes?: (request: IamRequest<Body>) => Attributes;
  readonly checks: readonly Check[];
  /** Reads and checks the body. @throws RemoteError PARSE or LocalError INVALID_ARGUMENT (4.00), NOT_FOUND (4.04) */
  readonly read?: (request: DeviceCoapRequest, iam: Iam) => Body;
  /** Does it. A payload of bytes is CBOR, a text is for a person. */
  readonly answer: (request: IamRequest<Body>) => Answer | Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly payload?: Uint8Array | string;
  /** Seconds. */
  readonly maxAge?: number;
}

/** An endpoint among others: what its body is, is its own business. */
export function endpoint<Body>(definition: IamEndpoint<Body>): IamEndpoint {
  return definition as unknown as IamEndpoint;
}

/** The payload of a request that has to have one. @throws LocalError INVALID_ARGUMENT without CBOR */
export function cborBody({ contentFormat, payload }: DeviceCoapRequest): Uint8Array {
  if (contentFormat === CONTENT_FORMAT_CBOR && payload.length > 0) return payload;
  throw new LocalError('INVALID_ARGUMENT', 'A CBOR body is needed, content format 60');
}

/** The answer to a request. @throws what says something about us: the resource answers 5.00 and logs it */
export async function serve(definition: IamEndpoint, service: IamService, from: DeviceCoapRequest): Promise<DeviceCoapResponse> {
  const { iam, device } = service;
  const { connection, parameters } = from;
  const { remoteAddress: address } = connection;
  let request: IamRequest<unknown> = {
    ...service,
    caller: device.caller(connection),
    address,
    parameters,
    demand: undefined,
    body: undefined,
  };
  try {
    for (const check of definition.checks) {
      if (check === 'body') request = { ...request, body: definition.read?.(from, iam) };
      else request = { ...request, demand: authorize(definition, request) };
    }
    const wait = changesItself(definition, request) ? service.changeRates.take(parameters.username ?? '') : 0;
    if (wait > 0) return { status: Status.TOO_MANY_REQUESTS, payload: 'Too many changes', maxAge: wait };
    const answer = await definition.answer(request);
    return answer.payload instanceof Uint8Array ? { ...answer, contentFormat: CONTENT_FORMAT_CBOR } : answer;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (error.code === 'FORBIDDEN') device.denied?.(request.caller, actionOf(definition), definition.attributes?.(request) ?? {});
    return refusal(error);
  }
}

/** Whether the caller changes its own record. */
function changesItself({ method }: IamEndpoint, { iam, caller, parameters }: IamRequest<unknown>): boolean {
  return (
    (method === 'PUT' || method === 'DELETE') &&
    parameters.username !== undefined &&
    iam.resolveCaller(caller)?.username === parameters.username
  );
}

function authorize({ action, pairing, attributes }: IamEndpoint, request: IamRequest<unknown>): Demand | undefined {
  const { iam, caller } = request;
  if (pairing !== undefined) iam.requirePairing(pairing, caller);
  if (action === undefined) return undefined;
  const demand = { action, attributes: attributes?.(request) ?? {} };
  if (!iam.check(caller, action, demand.attributes)) throw new LocalError('FORBIDDEN', 'Access denied');
  return demand;
}

function actionOf({ action, pairing }: IamEndpoint): string {
  return action ?? `IAM:Pairing${pairing}`;
}

const statuses: ReadonlyMap<string, number> = new Map([
  ['PARSE', Status.BAD_REQUEST],
  ['INVALID_ARGUMENT', Status.BAD_REQUEST],
  ['UNAUTHORIZED', Status.UNAUTHORIZED],
  ['FORBIDDEN', Status.FORBIDDEN],
  ['NOT_FOUND', Status.NOT_FOUND],
  ['IN_USE', Status.CONFLICT],
  // Limits and a vanished invitee are answered 5.00 here (reference §1.1, §1.3).
  ['OUT_OF_MEMORY', Status.INTERNAL_SERVER_ERROR],
  ['INVALID_STATE', Status.INTERNAL_SERVER_ERROR],
  ['NOT_ATTACHED', Status.SERVICE_UNAVAILABLE],
  ['OPERATION_IN_PROGRESS', Status.SERVICE_UNAVAILABLE],
]);

function refusal(error: SvcError): DeviceCoapResponse {
  const status = statuses.get(error.code);
  if (status === undefined) throw error;
  // Whose a name or key is, is not the business of who asks for it.
  return { status, payload: status === Status.CONFLICT ? 'Already in use' : error.message };
}
