/** A push notification to a user of the device, through the base station and the push provider (docs/outbound.md). */
import { check, text } from '../protocol/arguments.ts';
import { type CoapResponse, Status } from '../protocol/coap/index.ts';
import { DevicePath, decodePushAnswer, encodePushRequest, type PushAnswer, stationError } from '../protocol/control/index.ts';
import { type ErrorCode, LocalError, RemoteError } from '../protocol/errors/index.ts';
import { StationCall, type StationRequest } from './station-call.ts';

const ERRORS: ReadonlyMap<number, ErrorCode> = new Map<number, ErrorCode>([
  [Status.FORBIDDEN, 'FORBIDDEN'],
  [Status.TOO_MANY_REQUESTS, 'TOO_MANY_REQUESTS'],
  [Status.GATEWAY_TIMEOUT, 'TIMEOUT'],
]);

/** A notification, created by `Device.createPushNotification`; can be sent again. */
export class PushNotification {
  readonly #call: StationCall;
  #projectId: string | null = null;
  #payload: string | null = null;
  #answer: PushAnswer | null = null;

  constructor(request: StationRequest) {
    this.#call = new StationCall(request, DevicePath.PUSH_SEND);
  }

  /** Sets the project id at the provider. @throws LocalError INVALID_ARGUMENT */
  setProjectId(projectId: string): void {
    check('the project id of a push', projectId, text);
    this.#projectId = projectId;
  }

  /**
   * Sets the provider's document as JSON text: `{"message": {"token": …, "notification": {…}}}`, at most 64 KiB.
   * @throws LocalError INVALID_ARGUMENT
   */
  setPayload(payload: string): void {
    check('the payload of a push', payload, text);
    this.#payload = payload;
  }

  /**
   * Sends it; resolves with the provider's answer, of any status. That may take 100 s.
   * @throws LocalError INVALID_STATE (no project id or payload), OPERATION_IN_PROGRESS, NOT_ATTACHED, STOPPED;
   *   RemoteError FORBIDDEN (the base station has no credential for the project), TOO_MANY_REQUESTS, TIMEOUT,
   *   BAD_RESPONSE (no answer from the provider)
   */
  async send(): Promise<void> {
    if (this.#projectId === null || this.#payload === null)
      throw new LocalError('INVALID_STATE', 'a push needs a project id and a payload');
    this.#answer = null;
    const response = await this.#call.post(encodePushRequest({ projectId: this.#projectId, body: this.#payload }));
    this.#answer = pushAnswer(response);
  }

  /** Ends `send` with STOPPED. The notification may still be delivered. */
  stop(): void {
    this.#call.stop();
  }

  /**
   * HTTP status of the provider: 200 sent, 400 bad document, 403 no permission, 404 the token is no longer valid.
   * @throws LocalError INVALID_STATE before an answer
   */
  getResponseStatusCode(): number {
    return this.#answered().statusCode;
  }

  /** The provider's answer, at most 4096 bytes. @throws LocalError INVALID_STATE before an answer */
  getResponseBody(): string {
    return this.#answered().body;
  }

  #answered(): PushAnswer {
    if (this.#answer === null) throw new LocalError('INVALID_STATE', 'the push has no answer yet');
    return this.#answer;
  }
}

function pushAnswer(response: CoapResponse): PushAnswer {
  if (response.status !== Status.CREATED)
    throw new RemoteError(ERRORS.get(response.status) ?? 'BAD_RESPONSE', stationError(response).message);
  try {
    return decodePushAnswer(response.payload);
  } catch (error) {
    throw new RemoteError('BAD_RESPONSE', (error as Error).message);
  }
}
