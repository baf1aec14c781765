/** Asks a base station where it now sees this end. */
import { type ClientPath, type DevicePath, decodeSeenAddress, type SocketAddress } from '../../protocol/control/index.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import type { Session } from '../session/session.ts';

const CONTENT = 205;
/** ms to wait for the answer: a round of the rendezvous waits for it. */
const TIMEOUT = 1_000;

/**
 * Also notes the answer at the channel.
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
