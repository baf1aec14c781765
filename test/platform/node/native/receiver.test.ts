/** Receiving in batches: bytes and senders, lent memory, turns of the event loop, pointers of either size. */
import { describe, expect, it } from 'vitest';
import { MESSAGES } from '../../../../platform/node/native/messages.ts';
import { NativeReceiver } from '../../../../platform/node/native/receiver.ts';
import { encodeSocketAddress } from '../../../../platform/node/native/socket-address.ts';
import { Kernel } from './kernel.ts';

interface Arrival {
  readonly bytes: number[];
  readonly from: string;
}

function setUp(pointerSize?: number) {
  const kernel = new Kernel(pointerSize);
  const receiver = new NativeReceiver(kernel, 3);
  const arrivals: Arrival[] = [];
  const arrive = (bytes: ArrayLike<number>, address = '192.0.2.7', port = 5683): void => {
    kernel.waiting.push({ bytes: Uint8Array.from(bytes), from: encodeSocketAddress(address, port, kernel)! });
  };
  const drain = (): void =>
    receiver.drain((datagram, address, port) => arrivals.push({ bytes: [...datagram], from: `${address} ${port}` }));
  return { kernel, receiver, arrivals, arrive, drain };
}

describe('receiving in batches', () => {
  it.each([8, 4])('returns bytes and sender of each datagram, with pointers of %d bytes', (pointerSize) => {
    const { kernel, arrivals, arrive, drain } = setUp(pointerSize);
    const expected: Arrival[] = [];
    const peers = ['192.0.2.7', '2001:db8::1', '127.0.0.1', '::1', '2001:db8::2'] as const;
    for (let i = 0; i < 60; i++) {
      const bytes = new Array<number>((i * 37) % 1500).fill(i);
      const [address, port] = [peers[(i >> 1) % peers.length]!, 1 + (i % 3)];
      arrive(bytes, address, port);
      expected.push({ bytes, from: `${address} ${port}` });
    }
    drain();
    expect(arrivals).toEqual(expected);
    expect(kernel.called.length).toBe(2);
  });

  it('has capacity for the largest datagram in each slot', { tags: ['slow'] }, () => {
    const { arrivals, arrive, drain } = setUp();
    for (let i = 0; i < MESSAGES; i++) arrive(new Uint8Array(65_507).fill(i));
    drain();
    expect(arrivals.map(({ bytes }) => [bytes.length, bytes[0], bytes.at(-1)])).toEqual(
      Array.from({ length: MESSAGES }, (_, i) => [65_507, i, i]),
    );
  });

  it('lends the same memory again, also when it was changed', () => {
    const { kernel, receiver, arrive } = setUp();
    const seen: Uint8Array[] = [];
    for (let round = 0; round < 2; round++) {
      arrive([1, 2, 3]);
      receiver.drain((datagram) => {
        expect([...datagram]).toEqual([1, 2, 3]);
        datagram.fill(9);
        seen.push(datagram);
      });
    }
    expect(seen[0]).toBe(seen[1]);
    expect(kernel.waiting).toEqual([]);
  });

  it('leaves datagrams beyond 64 for the next turn', async () => {
    const { kernel, arrivals, arrive, drain } = setUp();
    for (let i = 0; i < 3 * MESSAGES; i++) arrive([i]);
    drain();
    drain();
    expect([arrivals.length, kernel.waiting.length]).toEqual([2 * MESSAGES, MESSAGES]);
    await new Promise((resolve) => setImmediate(resolve));
    drain();
    expect(arrivals.map(({ bytes }) => bytes[0])).toEqual(Array.from({ length: 3 * MESSAGES }, (_, i) => i));
  });

  it('leaves bytes beyond a mebibyte for the next turn', { tags: ['slow'] }, async () => {
    const { kernel, arrivals, arrive, drain } = setUp();
    for (let i = 0; i < 60; i++) arrive(new Uint8Array(40_000));
    drain();
    drain();
    // 32 at first, then four at a time.
    expect([arrivals.length, kernel.waiting.length]).toEqual([32, 28]);
    await new Promise((resolve) => setImmediate(resolve));
    drain();
    expect(arrivals.length).toBe(60);
  });

  it('receives large datagrams a few at a time, and small ones in batches again', () => {
    const { kernel, arrivals, arrive, drain } = setUp();
    for (let i = 0; i < MESSAGES + 9; i++) arrive(new Uint8Array(i < MESSAGES + 4 ? 17_000 : 10));
    drain();
    expect(arrivals.length).toBe(MESSAGES + 9);
    // 32; 4; 4 and one, which is small; the remainder is less than a batch then.
    expect(kernel.called.length).toBe(4);
  });

  it('polls less often after polling in vain, down to once in 16 datagrams, and each time again once there was more', () => {
    const { kernel, arrivals, arrive, drain } = setUp();
    const looks: number[] = [];
    for (let i = 1; i <= 64; i++) {
      drain();
      if (kernel.called.splice(0).length > 0) looks.push(i);
    }
    expect(looks).toEqual([1, 3, 7, 15, 31, 47, 63]);
    arrive([7]);
    for (let i = 0; i < 16; i++) drain();
    expect(arrivals.length).toBe(1);
    arrive([7]);
    drain();
    arrive([7]);
    drain();
    expect(arrivals.length).toBe(3);
  });

  it('does not poll again when a batch was not full, and never once it is closed', () => {
    const { kernel, receiver, arrivals, arrive, drain } = setUp();
    arrive([1]);
    arrive([2]);
    drain();
    expect([arrivals.length, kernel.called.length]).toEqual([2, 1]);
    for (let i = 0; i < 2 * MESSAGES; i++) arrive([3]);
    receiver.drain(() => receiver.close());
    expect([kernel.called.length, kernel.waiting.length]).toEqual([2, MESSAGES]);
    drain();
    expect(kernel.called.length).toBe(2);
  });
});
