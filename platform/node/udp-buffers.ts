/**
 * Enlarges the kernel's socket buffers, and reports the granted size.
 *
 * Datagrams that arrive while the event loop is busy must fit into the receive buffer; the rest is lost. Linux grants
 * at most `net.core.rmem_max`, silently, and reports twice the size, as it includes its own bookkeeping; macOS refuses
 * a size that is too large.
 */
import type { Socket } from 'node:dgram';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Log } from '../environment.ts';

/** Bytes that arrive in one busy turn of the event loop (some 10 ms) at several hundred megabytes a second. */
export const RECEIVE_BUFFER = 8 * 1024 * 1024;
/** Lower bound: every system grants this much by default. */
const MIN_BUFFER = 64 * 1024;
const MAX_BUFFER = 2 ** 30;

/** Systems that report twice the room for data. */
const DOUBLING = process.platform === 'linux' ? 2 : 1;

/** Environments whose log has shown the remedy, once each. */
const reported = new WeakSet<object>();

/** Checks an operator's buffer size. @throws LocalError INVALID_ARGUMENT unless a whole number from 65,536 to 2^30 */
export function checkBuffer(size: number): number {
  if (Number.isInteger(size) && size >= MIN_BUFFER && size <= MAX_BUFFER) return size;
  throw new LocalError('INVALID_ARGUMENT', `${size} is not the size of a socket buffer: use ${MIN_BUFFER} to ${MAX_BUFFER} bytes`);
}

/**
 * Enlarges both buffers of a bound socket. @returns bytes of the receive buffer, 0 when the system does not report it
 */
export function enlargeBuffers(
  socket: Socket,
  settings: { readonly log: Log; readonly receiveBuffer?: number; readonly sendBuffer?: number },
): number {
  const { log, receiveBuffer: asked = RECEIVE_BUFFER, sendBuffer } = settings;
  try {
    if (sendBuffer !== undefined) ask(sendBuffer, (size) => socket.setSendBufferSize(size));
    ask(asked, (size) => socket.setRecvBufferSize(size));
    const granted = socket.getRecvBufferSize() / DOUBLING;
    log.debug('UDP buffers', { asked, granted, send: socket.getSendBufferSize() / DOUBLING });
    if (granted < asked && !reported.has(settings)) {
      reported.add(settings);
      const remedy = DOUBLING === 2 ? `sysctl -w net.core.rmem_max=${asked}` : 'raise the limit of the system';
      log.info('UDP receive buffer is smaller than asked for; bursts may be lost', { asked, granted, remedy });
    }
    return granted;
  } catch (error) {
    log.debug('UDP buffers stay at their defaults', { error: (error as Error).message });
    return 0;
  }
}

/** Sets the largest of size, size / 2, … that the system does not refuse. */
function ask(size: number, set: (size: number) => void): void {
  for (let wanted = size; ; wanted /= 2) {
    try {
      set(wanted);
      return;
    } catch (error) {
      if (wanted / 2 < MIN_BUFFER) throw error;
    }
  }
}
