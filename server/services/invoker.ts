/**
 * Invokes a service for a device: one signed HTTP POST of `{"productId", "deviceId", "message": base64}` to the
 * service's URL, never repeated.
 *
 * The URL's host is resolved once, every address is checked (`outbound/addresses.ts`), and the connection goes to a
 * checked address.
 */

import type { Environment } from '../../platform/environment.ts';
import type { ServiceAnswer, ServiceRequest } from '../../protocol/control/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { allowedAddresses } from '../outbound/addresses.ts';
import { type HttpAnswer, type HttpPost, withTimeout } from '../outbound/http.ts';
import type { Service } from '../storage/outbound-store.ts';
import { type Sealer, serviceRecord } from '../storage/sealing.ts';
import type { Store } from '../storage/store.ts';
import { ANSWER_LIMIT, serviceAnswer } from './answer.ts';
import { signatureHeaders } from './signature.ts';

export interface ServiceInvokerOptions {
  environment: Environment;
  store: Store;
  sealer: Sealer;
  post: HttpPost;
  signal: AbortSignal;
}

export class ServiceInvoker {
  readonly #options: ServiceInvokerOptions;

  constructor(options: ServiceInvokerOptions) {
    this.#options = options;
  }

  /**
   * @throws RemoteError NOT_FOUND (the device's product has no such service), TIMEOUT, BAD_RESPONSE (not reachable, not
   *   allowed, no valid answer)
   */
  async invoke(device: { productId: string; deviceId: string }, { serviceId, message }: ServiceRequest): Promise<ServiceAnswer> {
    const { environment, store } = this.#options;
    const service = await store.outbound.serviceOfProduct(serviceId, device.productId);
    if (service === null) throw new RemoteError('NOT_FOUND', 'Unknown service id');
    try {
      return serviceAnswer(await this.#post(service, device, message));
    } catch (error) {
      if (error instanceof RemoteError) environment.log.warn('service invocation failed', { service: serviceId, reason: error.message });
      throw error;
    }
  }

  async #post(service: Service, device: { productId: string; deviceId: string }, message: Uint8Array): Promise<HttpAnswer> {
    const { environment, post, signal } = this.#options;
    const { clock, network } = environment;
    const begun = clock.now();
    const url = new URL(service.url);
    const resolving = allowedAddresses(
      url,
      (host) => network.resolve(host),
      () => service.allowPrivate,
    );
    const addresses = await withTimeout(clock, service.timeout, resolving);
    const { productId, deviceId } = device;
    const body = JSON.stringify({ productId, deviceId, message: Buffer.from(message).toString('base64') });
    const timeout = Math.max(1, service.timeout - (clock.now() - begun));
    return post({ url, headers: this.#headers(service, body), body, timeout, limit: ANSWER_LIMIT, addresses, signal });
  }

  #headers(service: Service, body: string): Record<string, string> {
    const { environment, sealer } = this.#options;
    const id = `msg_${Buffer.from(environment.crypto.randomBytes(16)).toString('hex')}`;
    const timestamp = Math.floor(environment.clock.wallTime() / 1000);
    const secret = sealer.open(service.sealedSecret, serviceRecord(service));
    return { 'content-type': 'application/json', ...signatureHeaders(secret, { id, timestamp, body }) };
  }
}
