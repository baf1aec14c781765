/**
 * A UDP socket on loopback that reports the hop limit of each datagram as it arrives (IP_RECVTTL, IPV6_RECVHOPLIMIT).
 * Linux with koffi.
 */
import { readFileSync } from 'node:fs';

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const MSG_DONTWAIT = 0x40;
/** Level and name of the option that requests the control message. */
const RECEIVE = { [AF_INET]: [0, 12], [AF_INET6]: [41, 51] } as const;

export interface TtlReader {
  readonly port: number;
  /** Hop limit of datagrams without their own. */
  readonly systemTtl: number;
  /** First byte and hop limit of each datagram that has arrived. */
  read(): [number, number][];
  close(): void;
}

/** @param address 127.0.0.1 or ::1 */
export async function openTtlReader(address: string): Promise<TtlReader> {
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const family = address.includes(':') ? AF_INET6 : AF_INET;
  const fd: number = libc.func('int socket(int, int, int)')(family, SOCK_DGRAM, 0);
  const name = new Uint8Array(new ArrayBuffer(28));
  new Uint16Array(name.buffer)[0] = family;
  name.set(family === AF_INET ? [127, 0, 0, 1] : [1], family === AF_INET ? 4 : 23);
  const size = Uint32Array.of(family === AF_INET ? 16 : 28);
  if (libc.func('int bind(int, const void *, uint32_t)')(fd, name, size[0]) !== 0) throw new Error('bind failed');
  libc.func('int getsockname(int, void *, void *)')(fd, name, size);
  const [level, option] = RECEIVE[family];
  libc.func('int setsockopt(int, int, int, const void *, uint32_t)')(fd, level, option, Int32Array.of(1), 4);
  const recvmsg = libc.func('intptr_t recvmsg(int, void *, int)');
  const close = libc.func('int close(int)');

  const [bytes, control] = [new Uint8Array(new ArrayBuffer(2048)), new Uint8Array(new ArrayBuffer(64))];
  const vector = BigUint64Array.of(koffi.address(bytes), BigInt(bytes.length));
  const words = new DataView(control.buffer);
  return {
    port: name[2]! * 256 + name[3]!,
    systemTtl: Number(
      readFileSync(family === AF_INET ? '/proc/sys/net/ipv4/ip_default_ttl' : '/proc/sys/net/ipv6/conf/lo/hop_limit', 'latin1'),
    ),
    read() {
      const arrived: [number, number][] = [];
      for (;;) {
        const header = BigUint64Array.of(0n, 0n, koffi.address(vector), 1n, koffi.address(control), BigInt(control.length), 0n);
        if (recvmsg(fd, header, MSG_DONTWAIT) < 0) return arrived;
        arrived.push([bytes[0]!, words.getInt32(16, true)]);
      }
    },
    close: () => void close(fd),
  };
}
