/** Requests of either end to its base station. */
import {
  type ClientPath,
  CONTENT_FORMAT_CBOR,
  type DevicePath,
  decodeSeenAddress,
  encodeRouteRelease,
  type SocketAddress,
} from '../../protocol/control/index.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import type { Session } from '../session/session.ts';

const CONTENT = 205;
/** ms to wait for the answer: a round of the rendezvous waits for it. */
const TIMEOUT = 1_000;

/**
 * Asks a base station where it now sees this end, and notes the answer at the channel.
 * @returns null without a usable answer in time
 */
export async function askAddress(
  channel: Session,
  path: typeof ClientPath.ADDRESS | typeof DevicePath.ADDRESS,
): Promise<SocketAddress | null> {
  try {
    const { status, payload } = await channel.request({ method: 'GET', path, timeout: TIMEOUT });
    if (status !== CONTENT) return null;
    const address = decodeSeenAddress(payload);
    channel.noteObservedAddress(address);
    return address;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return null;
  }
}

/**
 * Notifies the station that this end no longer uses the route: otherwise it keeps the route until its channel ends, or
 * the route has been unused for minutes. Nothing depends on the answer.
 * @param route this end's 8-byte id of it
 */
export function releaseRoute(channel: Session, path: typeof ClientPath.ROUTE | typeof DevicePath.ROUTE, route: Uint8Array): void {
  const request = { method: 'DELETE', path, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeRouteRelease(route) } as const;
  channel.request(request).catch(() => {});
}
