/**
 * Finds the file descriptor of a bound `dgram` socket. Node does not reveal it, so the addresses of all descriptors of
 * the process are compared: no other in this process can have ours, as it is bound exclusively.
 */
import type { Socket } from 'node:dgram';
import { readdirSync, readlinkSync } from 'node:fs';
import { orElse } from '../../../protocol/or-else.ts';
import { encodeSocketAddress, LENGTH_IPV6 } from './socket-address.ts';
import { SO_TYPE, SOCK_DGRAM, SOL_SOCKET, type SystemCalls } from './system-calls.ts';

const DESCRIPTORS = '/proc/self/fd';

/** @returns −1 when it is not found, or not the only one. */
export function descriptorOf(socket: Socket, calls: SystemCalls): number {
  const { address, port } = socket.address();
  const wanted = encodeSocketAddress(address, port, calls);
  if (wanted === null) return -1;
  const found = openSockets().filter((fd) => isDatagram(fd, calls) && isBoundTo(fd, wanted, calls));
  return found.length === 1 ? found[0]! : -1;
}

function openSockets(): number[] {
  return orElse(() => readdirSync(DESCRIPTORS), [])
    .filter(isSocket)
    .map(Number);
}

function isSocket(name: string): boolean {
  return orElse(() => readlinkSync(`${DESCRIPTORS}/${name}`), '').startsWith('socket:');
}

function isDatagram(fd: number, calls: SystemCalls): boolean {
  const type = new Int32Array(1);
  return calls.getsockopt(fd, SOL_SOCKET, SO_TYPE, type, Uint32Array.of(type.byteLength)) === 0 && type[0] === SOCK_DGRAM;
}

function isBoundTo(fd: number, wanted: Uint8Array, calls: SystemCalls): boolean {
  const bytes = new Uint8Array(LENGTH_IPV6);
  const length = Uint32Array.of(bytes.length);
  return calls.getsockname(fd, bytes, length) === 0 && length[0] === wanted.length && wanted.every((byte, i) => byte === bytes[i]);
}
