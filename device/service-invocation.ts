/** Invokes an HTTP service that the operator of the base station has configured (docs/outbound.md). */
import { bytesOf, check, type Payload, text } from '../protocol/arguments.ts';
import { type CoapResponse, Status } from '../protocol/coap/index.ts';
import {
  DevicePath,
  decodeServiceAnswer,
  encodeServiceRequest,
  MAX_SERVICE_MESSAGE,
  type MessageFormat,
  type ServiceAnswer,
  stationError,
} from '../protocol/control/index.ts';
import { LocalError, RemoteError } from '../protocol/errors/index.ts';
import { StationCall, type StationRequest } from './station-call.ts';

/** An invocation, created by `Device.createServiceInvocation`; can be executed again. */
export class ServiceInvocation {
  readonly #call: StationCall;
  #serviceId: string | null = null;
  #message = new Uint8Array(0);
  #answer: ServiceAnswer | null = null;

  constructor(request: StationRequest) {
    this.#call = new StationCall(request, DevicePath.SERVICE_INVOKE);
  }

  /** @throws LocalError INVALID_ARGUMENT */
  setServiceId(serviceId: string): void {
    check('the service id', serviceId, text);
    this.#serviceId = serviceId;
  }

  /** Sets the message, text as UTF-8; default none. @throws LocalError INVALID_ARGUMENT, also over 64 KiB */
  setMessage(given: Payload): void {
    const message = bytesOf('the message of an invocation', given);
    if (message.length > MAX_SERVICE_MESSAGE)
      throw new LocalError('INVALID_ARGUMENT', `a message has at most ${MAX_SERVICE_MESSAGE} bytes`);
    this.#message = message.slice();
  }

  /**
   * Invokes the service; resolves with its answer, of any status.
   * @throws LocalError INVALID_STATE (no service id), OPERATION_IN_PROGRESS, NOT_ATTACHED, STOPPED; RemoteError FAILED
   *   with the reason
   */
  async execute(): Promise<void> {
    if (this.#serviceId === null) throw new LocalError('INVALID_STATE', 'an invocation needs a service id');
    this.#answer = null;
    const response = await this.#call.post(encodeServiceRequest({ serviceId: this.#serviceId, message: this.#message }));
    this.#answer = serviceAnswer(response);
  }

  /** Ends `execute` with STOPPED. The service may have been invoked. */
  stop(): void {
    this.#call.stop();
  }

  /** HTTP status of the service. This and the other two: @throws LocalError INVALID_STATE before an answer */
  getResponseStatusCode(): number {
    return this.#answered().statusCode;
  }

  getResponseMessage(): Uint8Array {
    return this.#answered().message;
  }

  getResponseMessageFormat(): MessageFormat {
    return this.#answered().messageFormat;
  }

  #answered(): ServiceAnswer {
    if (this.#answer === null) throw new LocalError('INVALID_STATE', 'the invocation has no answer yet');
    return this.#answer;
  }
}

function serviceAnswer(response: CoapResponse): ServiceAnswer {
  if (response.status !== Status.CREATED) throw new RemoteError('FAILED', stationError(response).message);
  try {
    return decodeServiceAnswer(response.payload);
  } catch (error) {
    throw new RemoteError('FAILED', (error as Error).message);
  }
}
