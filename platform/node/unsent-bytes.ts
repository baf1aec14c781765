/**
 * What a TCP socket has not delivered: bytes that wait in Node, and those in the kernel that the peer has not
 * acknowledged. A reset drops both.
 *
 * Linux lists the latter in /proc/net/tcp (proc_net_tcp.rst, `tx_queue`). Other systems do not show it: there, a
 * pause gives the kernel time.
 */
import { readFile } from 'node:fs/promises';
import { isIPv4, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** Our constant: the pause, ms. */
const ELSEWHERE = 100;

/** Returns how many bytes are not delivered: 0 for a socket that is closed or was never written to. */
export async function unsentBytes(socket: Socket): Promise<number> {
  if (socket.destroyed || socket.bytesWritten === 0) return 0;
  if (socket.writableLength > 0) return socket.writableLength;
  const { localAddress, localPort, remotePort } = socket;
  if (localAddress === undefined || localPort === undefined || remotePort === undefined) return 0;
  // A socket that listens on `::` carries IPv4 as mapped addresses.
  const table = isIPv4(localAddress) ? '/proc/net/tcp' : '/proc/net/tcp6';
  const lines = await readFile(table, 'latin1').catch(() => null);
  if (lines === null) await pause(ELSEWHERE);
  const match = lines?.match(new RegExp(`:${hex(localPort)} [0-9A-F]+:${hex(remotePort)} [0-9A-F]{2} ([0-9A-F]{8}):`));
  return match ? Number.parseInt(match[1]!, 16) : 0;
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
