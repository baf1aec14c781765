/**
 * Looks for one device on the local network, for a connect. Its instance is asked for by name, which is answered at
 * once; its subtype also finds it where the instance has another name. Alternatively it listens to all devices, and
 * selects by the ids of their TXT record.
 *
 * Records prove nothing: any host on the link can answer. The handshake shows which candidate is the device.
 */
import type { SocketAddress } from '../../protocol/address.ts';
import { type DiscoveredService, idsOf, instanceOf, type ServiceChange } from '../../protocol/discovery/index.ts';
import { pause } from '../pause.ts';
import type { MdnsBrowser } from './browser.ts';

/**
 * Most candidates of one search. Any host on the link can use them up; later ones are not reported, and the other
 * channels of the connect are not affected.
 */
export const MAX_CANDIDATES = 32;

export interface FindDeviceOptions {
  readonly productId: string;
  readonly deviceId: string;
  /** ms */
  readonly timeout: number;
  /** Ends the search. */
  readonly signal?: AbortSignal;
  /** Listens to all devices instead of asking for this one (the option ScanLocalConnect). Default false. */
  readonly scanAll?: boolean;
  /** Called with each candidate once, as they arrive, 32 at most; with a zone if it is valid on one link only. */
  readonly onCandidate: (candidate: SocketAddress) => void;
}

/**
 * Looks for a device until the timeout or the signal.
 * @returns the number of candidates; 0 at once when no device can have these ids
 * @throws LocalError NOT_IMPLEMENTED where the environment has no multicast DNS; STOPPED when the browser is closed
 */
export async function findDevice(browser: MdnsBrowser, options: FindDeviceOptions): Promise<number> {
  const { productId, deviceId, signal, scanAll = false, onCandidate } = options;
  const instance = instanceOf(productId, deviceId);
  if (instance === null || signal?.aborted === true) return 0;
  const seen = new Set<string>();
  const take = ({ action, service }: ServiceChange): void => {
    if (action === 'REMOVE' || (scanAll && !hasIds(service, productId, deviceId))) return;
    for (const { address, port } of service.endpoints) {
      const key = `${address} ${port}`;
      if (seen.has(key) || seen.size === MAX_CANDIDATES) continue;
      seen.add(key);
      onCandidate({ address, port });
    }
  };
  const ends = scanAll ? [browser.browse(null, take)] : [browser.find(instance, take), browser.browse(`${productId}-${deviceId}`, take)];
  await pause(browser.environment.clock, options.timeout, signal);
  for (const end of ends) end();
  return seen.size;
}

/** Compares the ids exactly: a device has them from its maker. */
function hasIds({ txt }: DiscoveredService, productId: string, deviceId: string): boolean {
  const ids = idsOf(txt ?? []);
  return ids.productId === productId && ids.deviceId === deviceId;
}
