/**
 * Socket buffers of the kernel: asked for, and what was granted is told.
 *
 * Datagrams that arrive while the event loop is busy must fit into the receive buffer; what does not is lost. Linux grants at most
 * `net.core.rmem_max`, silently, and reports twice the size, as it counts its own bookkeeping too; macOS refuses what is too large.
 */
import type { Socket } from 'node:dgram';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Log } from '../environment.ts';

/** What one busy turn of the event loop (some 10 ms) lets wait at several hundred megabytes a second. */
export const RECEIVE_BUFFER = 8 * 1024 * 1024;
/** Nobody asks for less: every system grants as much without being asked. */
const LEAST_BUFFER = 64 * 1024;
const MOST_BUFFER = 2 ** 30;

/** Systems whose answer is twice what holds data. */
const DOUBLING = process.platform === 'linux' ? 2 : 1;

/** Environments whose owner was told how to get more, once each. */
const told = new WeakSet<object>();

/** The size of a buffer as a person states it. @throws LocalError INVALID_ARGUMENT unless a whole number from 65,536 to 2^30 */
export function checkBuffer(size: number): number {
  if (Number.isInteger(size) && size >= LEAST_BUFFER && size <= MOST_BUFFER) return size;
  throw new LocalError('INVALID_ARGUMENT', `${size} is not the size of a socket buffer: use ${LEAST_BUFFER} to ${MOST_BUFFER} bytes`);
}

/** Enlarges both buffers of a bound socket. @returns bytes of the receive buffer, 0 when the system does not tell */
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
    if (granted < asked && !told.has(settings)) {
      told.add(settings);
      const remedy = DOUBLING === 2 ? `sysctl -w net.core.rmem_max=${asked}` : 'raise the limit of the system';
      log.info('UDP receive buffer is smaller than asked for; bursts may be lost', { asked, granted, remedy });
    }
    return granted;
  } catch (error) {
    log.debug('UDP buffers stay at their defaults', { error: (error as Error).message });
    return 0;
  }
}

/** The largest of size, size / 2, … that the system does not refuse. */
function ask(size: number, set: (size: number) => void): void {
  for (let wanted = size; ; wanted /= 2) {
    try {
      set(wanted);
      return;
    } catch (error) {
      if (wanted / 2 < LEAST_BUFFER) throw error;
    }
  }
}
