/** Addresses in the kernel's form. */
import { endianness } from 'node:os';
import { describe, expect, it } from 'vitest';
import { encodeSocketAddress, SocketAddressReader } from '../../../../platform/node/native/socket-address.ts';
import { Kernel } from './kernel.ts';

const family = (number: number): number[] => (endianness() === 'LE' ? [number, 0] : [0, number]);
const kernel = new Kernel();
const encode = (address: string, port: number): Uint8Array | null => encodeSocketAddress(address, port, kernel);

function read(reader: SocketAddressReader, bytes: Uint8Array): string {
  const words = new Uint32Array(9).fill(0xdbdbdbdb);
  new Uint8Array(words.buffer).set(bytes, 4);
  reader.read(words, 1);
  return `${reader.address} ${reader.port}`;
}

describe('socket addresses', () => {
  it('are those of ip(7) and ipv6(7)', () => {
    expect([...encode('192.0.2.7', 0x1234)!]).toEqual([...family(2), 0x12, 0x34, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    const ipv6 = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    expect([...encode('2001:db8::1', 5683)!]).toEqual([...family(10), 0x16, 0x33, 0, 0, 0, 0, ...ipv6, 0, 0, 0, 0]);
    expect([...encode('fe80::1%7', 1)!.subarray(24)]).toEqual(endianness() === 'LE' ? [7, 0, 0, 0] : [0, 0, 0, 7]);
  });

  it.each(['', 'localhost', '127.0.0.1%lo', 'fe80::1%no-such-zone'])('do not encode "%s"', (address) => {
    expect(encode(address, 1)).toBeNull();
  });

  it('decode as they were encoded, whatever the memory held before', () => {
    const reader = new SocketAddressReader(kernel);
    const peers = ['192.0.2.7', '192.0.2.8', '2001:db8::1', '2001:db8::2', '2001:db8::1:0:0:2', '::1', '0.0.0.0'];
    for (const before of peers)
      for (const peer of peers)
        for (const port of [1, 256, 65_535]) {
          read(reader, encode(before, 255)!);
          expect(read(reader, encode(peer, port)!)).toBe(`${peer} ${port}`);
          expect(read(reader, encode(peer, port)!)).toBe(`${peer} ${port}`);
        }
  });

  it('name the zone of a link-local address as Node does, by its number where it has no name', () => {
    const reader = new SocketAddressReader(kernel);
    expect(read(reader, encode('fe80::1%7', 1)!)).toBe('fe80::1%eth7 1');
    expect(read(reader, encode('fe80::1%eth8', 1)!)).toBe('fe80::1%eth8 1');
    expect(read(reader, encode('fe80::1%4000000000', 1)!)).toBe('fe80::1%4000000000 1');
    expect(read(reader, encode('fe80::1', 1)!)).toBe('fe80::1 1');
  });
});
