/**
 * The local channel: finds the device by multicast DNS and dials each address found at once; the first that
 * authenticates becomes the connection.
 *
 * Any host on the network can announce the device, so an announcement decides nothing: where the connection has a pin,
 * the peer must prove the device's key; no address waits for another, and the other channels of the connect do not wait
 * for this one. An announcement can direct packets only to nearby addresses: to a network of this host, and to private
 * addresses, since one network may be reached by routing through another.
 *
 * The channel fails when the search is over and every address has failed; the error is NOT_FOUND when nothing answered.
 */

import type { SocketAddress } from '../../protocol/address.ts';
import { isNear, parseAddress, parsePrefix } from '../../protocol/address.ts';
import { asSvcError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { type AddressKind, addressKind } from '../../protocol/special-addresses.ts';
import { type FindDeviceOptions, findDevice, type MdnsBrowser } from '../../runtime/discovery/index.ts';
import type { ConnectTarget, Host } from '../../runtime/host/index.ts';
import { type Failure, mostTelling } from '../../runtime/race.ts';
import type { Session } from '../../runtime/session/index.ts';
import { FIRST_TIMEOUT, raceOf } from './direct.ts';

/**
 * Longest time for one handshake, ms. An announced address may be a stranger's, or that of a device that has been
 * switched off: it gets four Initiates, and a failing connect waits no longer for it. On a network that loses a fifth
 * of the packets each way, one of the four is answered in all but one of 60 handshakes.
 */
export const HANDSHAKE_TIMEOUT = 2_500;

/** The device to search for, the time limit, and the method. */
export type LocalSearch = Pick<FindDeviceOptions, 'productId' | 'deviceId' | 'timeout' | 'scanAll'>;

/** Connects to the first address on the local network that authenticates. @throws the channel's error */
export async function connectLocal(
  host: Host,
  browser: MdnsBrowser,
  search: LocalSearch,
  target: ConnectTarget & { signal: AbortSignal },
): Promise<Session> {
  const { signal } = target;
  const race = raceOf(host, (failures) => channelError(failures, search, signal));
  const decided = new AbortController();
  const stop = (): void => race.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const timeout = Math.min(target.timeout ?? HANDSHAKE_TIMEOUT, HANDSHAKE_TIMEOUT);
  const onCandidate = ({ address, port }: SocketAddress): void => {
    if (isLocalNetwork(host, address)) race.add(() => host.dials.start({ ...target, address, port, timeout, firstTimeout: FIRST_TIMEOUT }));
  };
  const searching = findDevice(browser, { ...search, signal: decided.signal, onCandidate });
  searching.then(
    () => race.end(),
    (error: unknown) => race.stop(asSvcError(error)),
  );
  try {
    return await race.result;
  } finally {
    decided.abort();
    signal.removeEventListener('abort', stop);
  }
}

/** Kinds of addresses that local networks use. */
const LOCAL_KINDS: ReadonlySet<AddressKind> = new Set<AddressKind>(['private', 'shared', 'link-local']);

/**
 * Whether a device on this network may have that address. A host that does not report its networks has no multicast DNS
 * either.
 */
function isLocalNetwork({ environment }: Host, address: string): boolean {
  const plain = address.split('%')[0]!;
  const bytes = parseAddress(plain);
  if (bytes !== null && LOCAL_KINDS.has(addressKind(bytes))) return true;
  const own = (environment.network.interfaces?.() ?? []).flatMap(({ addresses }) => addresses.flatMap((each) => parsePrefix(each) ?? []));
  return isNear(plain, own);
}

/** A wrong key is one candidate that failed, and may be a stranger's: it hides what the device itself says. */
function rank({ code }: SvcError): number {
  if (code === 'FINGERPRINT_MISMATCH') return 1;
  if (code === 'TIMEOUT') return 2;
  return code === 'STOPPED' ? 3 : 0;
}

function channelError(failures: readonly Failure[], { timeout }: LocalSearch, signal: AbortSignal): SvcError {
  const error = mostTelling(
    failures.map((failure) => failure.error),
    rank,
  );
  if (error === null)
    return signal.aborted
      ? new LocalError('STOPPED', 'the search on the local network was stopped')
      : new RemoteError('NOT_FOUND', `the device did not answer on the local network within ${timeout / 1000} s`);
  if (error.code !== 'TIMEOUT') return error;
  return new RemoteError('NOT_FOUND', 'the device is announced on the local network, but does not answer', { cause: error });
}
