/**
 * The system calls of Linux for UDP that `dgram` does not make: one call that sends many datagrams (UDP_SEGMENT,
 * udp(7)), and reading without a buffer and a callback from C++ for each datagram.
 *
 * They are called through koffi, of which only the part for this processor is an optional dependency: the whole has an
 * install script. Numbers are those of asm-generic, which all Linux systems that Node and koffi run on share.
 */
import type { Log } from '../../environment.ts';

/**
 * Level and names of options, flags and errors (`<asm-generic/socket.h>`, `<linux/udp.h>`, `<asm-generic/errno.h>`).
 */
export const SOL_SOCKET = 1;
export const SO_TYPE = 3;
export const SOCK_DGRAM = 2;
export const SOL_UDP = 17;
export const UDP_SEGMENT = 103;
export const MSG_DONTWAIT = 0x40;
export const EAGAIN = 11;
/** EADDRNOTAVAIL, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH: no route to the destination. */
export const UNREACHABLE: readonly number[] = [99, 100, 101, 112, 113];
/** Control messages that set the hop limit of one datagram (ip(7), Linux 3.13; ipv6(7)). */
export const IPPROTO_IP = 0;
export const IP_TTL = 2;
export const IPPROTO_IPV6 = 41;
export const IPV6_HOPLIMIT = 52;

/**
 * Results and arguments as in the manual page of each; −1 is a failure, whose number `errno` returns until the next
 * call.
 */
export interface SystemCalls {
  errno(): number;
  getsockname(fd: number, address: Uint8Array, length: Uint32Array): number;
  getsockopt(fd: number, level: number, name: number, value: Int32Array, length: Uint32Array): number;
  setsockopt(fd: number, level: number, name: number, value: Int32Array, length: number): number;
  sendto(fd: number, bytes: Uint8Array, length: number, flags: number, to: Uint8Array, toLength: number): number;
  sendmsg(fd: number, header: Uint8Array, flags: number): number;
  recvmmsg(fd: number, headers: Uint8Array, count: number, flags: number, timeout: null): number;
  if_nametoindex(name: string): number;
  /** @param name IF_NAMESIZE bytes. @returns false for an index this host does not have */
  if_indextoname(index: number, name: Uint8Array): boolean;
  /** Returns the address of an array's memory. Keep the array alive while the kernel uses the address. */
  addressOf(memory: Uint8Array | Uint32Array): bigint;
  /** Bytes, 4 or 8. */
  readonly pointerSize: number;
}

/**
 * Returns null where they cannot be called: another system, koffi not installed, or native code forbidden
 * (`node --permission`).
 */
export async function loadSystemCalls(log: Log): Promise<SystemCalls | null> {
  if (process.platform !== 'linux') return null;
  try {
    const { default: koffi } = (await import(`@koromix/koffi-linux-${process.arch}`)) as typeof import('koffi');
    const libc = koffi.load(null);
    const nameOf = libc.func('void *if_indextoname(uint32_t, void *)');
    return {
      errno: () => koffi.errno(),
      getsockname: libc.func('int getsockname(int, void *, void *)'),
      getsockopt: libc.func('int getsockopt(int, int, int, void *, void *)'),
      setsockopt: libc.func('int setsockopt(int, int, int, const void *, uint32_t)'),
      sendto: libc.func('intptr_t sendto(int, const void *, size_t, int, const void *, uint32_t)'),
      sendmsg: libc.func('intptr_t sendmsg(int, const void *, int)'),
      recvmmsg: libc.func('int recvmmsg(int, void *, uint32_t, int, void *)'),
      if_nametoindex: libc.func('uint32_t if_nametoindex(const char *)'),
      if_indextoname: (index, name) => nameOf(index, name) !== null,
      addressOf: (memory) => koffi.address(memory),
      pointerSize: koffi.sizeof('void *'),
    };
  } catch (error) {
    log.debug('UDP without its own system calls', { error: (error as Error).message });
    return null;
  }
}
