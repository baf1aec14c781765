/**
 * One request at a time to the base station, which can be stopped. Push notifications and service invocations share it.
 */
import type { CoapResponse } from '../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR } from '../protocol/control/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { SessionRequest } from '../runtime/session/index.ts';

/** Sends a request over the channel to the base station. @throws LocalError NOT_ATTACHED */
export type StationRequest = (request: SessionRequest) => Promise<CoapResponse>;

export class StationCall {
  readonly #request: StationRequest;
  readonly #path: string;
  #running: AbortController | null = null;

  constructor(request: StationRequest, path: string) {
    this.#request = request;
    this.#path = path;
  }

  /** POST. @throws LocalError OPERATION_IN_PROGRESS, NOT_ATTACHED, STOPPED; SvcError when the channel ends */
  async post(payload: Uint8Array): Promise<CoapResponse> {
    if (this.#running !== null) throw new LocalError('OPERATION_IN_PROGRESS', 'it is already being sent');
    const running = new AbortController();
    this.#running = running;
    try {
      return await this.#request({
        method: 'POST',
        path: this.#path,
        contentFormat: CONTENT_FORMAT_CBOR,
        payload,
        signal: running.signal,
      });
    } finally {
      this.#running = null;
    }
  }

  /** Ends the running request with STOPPED; it may have taken effect. */
  stop(): void {
    this.#running?.abort();
  }
}
