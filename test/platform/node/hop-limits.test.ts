/** Datagrams with their own hop limit: no other datagram ever gets it, and packets are released in order and once. */
import type { Socket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type BoundSocket, silentLog } from '../../../platform/environment.ts';
import { DgramSender } from '../../../platform/node/dgram-sender.ts';
import { nodeEnvironment } from '../../../platform/node/environment.ts';
import { loadSystemCalls } from '../../../platform/node/native/system-calls.ts';
import { openTtlReader, type TtlReader } from './ttl-reader.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Runs the timers of the next 2 ms, of virtual time. */
const timers = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(2));

/**
 * A `dgram` socket that sends in a later tick with the hop limit of that time, or queues datagrams while it is full.
 */
class FakeSocket {
  /** Number and hop limit of each datagram that has left. */
  readonly sent: string[] = [];
  full = false;
  hopLimit = 64;
  /** Called once, as soon as a hop limit is set. */
  onLimit = (): void => {};
  #queue: (() => void)[] = [];

  send(bytes: Uint8Array, _port: number, _address: string, callback?: () => void): void {
    process.nextTick(() => {
      const leave = (): void => {
        this.sent.push(`${bytes[0]}:${this.hopLimit}`);
        if (callback !== undefined) process.nextTick(callback);
      };
      if (this.full || this.#queue.length > 0) this.#queue.push(leave);
      else leave();
    });
  }

  setTTL(hopLimit: number): void {
    if (hopLimit > 255) throw new Error('EINVAL');
    this.hopLimit = hopLimit;
    const { onLimit } = this;
    this.onLimit = () => {};
    onLimit();
  }

  getSendQueueCount(): number {
    return this.#queue.length;
  }

  /** The kernel takes the queued datagrams. */
  drain(): void {
    this.full = false;
    for (const leave of this.#queue.splice(0)) leave();
  }
}

function setUp() {
  const socket = new FakeSocket();
  const sender = new DgramSender(socket as unknown as Socket, 'udp4');
  const released: number[] = [];
  /** Each byte is its offset. */
  const memory = Uint8Array.from({ length: 16 }, (_, i) => i);
  const send = (...numbers: number[]): void => {
    for (const number of numbers) sender.send(memory, number, 1, '192.0.2.1', 1, (offset) => released.push(offset));
  };
  const limited = (number: number, hopLimit: number): boolean => sender.sendWithHopLimit(Uint8Array.of(number), '192.0.2.1', 1, hopLimit);
  return { socket, sender, released, send, limited };
}

describe('a hop limit with dgram', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
  afterEach(() => void vi.useRealTimers());

  it('applies to one datagram: those before and after leave with that of the system', async () => {
    const { socket, released, send, limited } = setUp();
    send(1, 2);
    limited(3, 4);
    send(5);
    limited(6, 7);
    send(7, 8);
    expect(released).toEqual([]);
    await turn();
    expect(socket.sent).toEqual(['1:64', '2:64', '3:4', '6:7', '5:64', '7:64', '8:64']);
    expect(released).toEqual([1, 2, 5, 7, 8]);
    send(9);
    await turn();
    expect(socket.sent.at(-1)).toBe('9:64');
  });

  it("waits for libuv's queue, and holds later datagrams", async () => {
    const { socket, released, send, limited } = setUp();
    socket.full = true;
    send(1);
    limited(2, 4);
    send(3);
    await timers();
    expect([socket.sent, socket.hopLimit, released]).toEqual([[], 64, []]);
    socket.drain();
    await timers();
    expect(socket.sent).toEqual(['1:64', '2:4', '3:64']);
    expect(released).toEqual([1, 3]);
  });

  it('stays until its datagram has left: nothing else leaves meanwhile', async () => {
    const { socket, released, send, limited } = setUp();
    socket.onLimit = () => {
      socket.full = true;
      send(2);
    };
    limited(1, 4);
    await timers();
    expect([socket.sent, released]).toEqual([[], []]);
    socket.drain();
    await timers();
    expect(socket.sent).toEqual(['1:4', '2:64']);
    expect(released).toEqual([2]);
  });

  it('lets held packets leave before later ones with a hop limit', async () => {
    const { socket, send, limited } = setUp();
    socket.onLimit = () => {
      send(2);
      limited(3, 5);
      send(4);
    };
    limited(1, 4);
    await turn();
    expect(socket.sent).toEqual(['1:4', '2:64', '4:64', '3:5']);
    expect(socket.hopLimit).toBe(64);
  });

  it('drops datagrams beyond 64 waiting, and those whose hop limit the system refuses', async () => {
    const { socket, limited } = setUp();
    expect(limited(0, 300)).toBe(true);
    for (let i = 1; i < 64; i++) expect(limited(i, 4)).toBe(true);
    expect(limited(64, 4)).toBe(false);
    await turn();
    expect(socket.sent).toEqual(Array.from({ length: 63 }, (_, i) => `${i + 1}:4`));
    expect(socket.hopLimit).toBe(64);
  });

  it.each(['waiting', 'leaving'])('releases each packet once and in order when the socket is closed while one is %s', async (state) => {
    const { socket, sender, released, send, limited } = setUp();
    const close = (): void => {
      const before = [...released];
      sender.close();
      expect(released).toEqual(before);
      expect(limited(4, 4)).toBe(false);
    };
    if (state === 'leaving') socket.onLimit = close;
    send(1);
    limited(2, 4);
    send(3);
    if (state === 'waiting') close();
    await turn();
    expect(released).toEqual([1, 3]);
    expect(socket.sent).not.toContain('3:4');
    expect(socket.sent).not.toContain('3:64');
  });

  it('leaves the socket idle for its successor only when the default hop limit is restored', async () => {
    const { socket, sender, send, limited } = setUp();
    const idle: number[] = [];
    socket.onLimit = () => sender.whenIdle(() => idle.push(socket.hopLimit, socket.sent.length));
    limited(1, 4);
    send(2);
    await turn();
    expect(idle).toEqual([64, 2]);
  });
});

const calls = await loadSystemCalls(silentLog);
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
const opened: { close(): void }[] = [];

afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
});

async function open(address: string, systemCallsAfter: number): Promise<{ socket: BoundSocket; reader: TtlReader }> {
  const reader = await openTtlReader(address);
  const socket = await nodeEnvironment({ systemCallsAfter }).network.bind({ port: 0, bulk: true, receive: () => {} });
  opened.push(reader, socket);
  return { socket, reader };
}

describe.skipIf(calls === null)(`a hop limit on a real socket${calls === null ? ' (skipped: needs koffi on Linux)' : ''}`, () => {
  const ways = [
    ['dgram', Number.POSITIVE_INFINITY],
    ['system calls', 0],
    ['a change from one to the other', 6],
  ] as const;
  describe.each(hasIpv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1'])('to %s', (address) => {
    it.each(ways)('with %s applies to one datagram alone', async (_, systemCallsAfter) => {
      const { socket, reader } = await open(address, systemCallsAfter);
      const path = socket.path(address, reader.port);
      const memory = Uint8Array.from({ length: 256 }, (_, i) => i);
      const released: number[] = [];
      const expected = new Map<number, number>();
      for (let i = 0; i < 60; i++) {
        const hopLimit = i % 5 === 2 ? 1 + (i % 7) : undefined;
        if (hopLimit === undefined) socket.send(memory, i, 1, path, (offset) => released.push(offset));
        else socket.sendWithHopLimit!(Uint8Array.of(i), path, hopLimit);
        expected.set(i, hopLimit ?? reader.systemTtl);
        if (i % 11 === 10) await turn();
      }
      while (released.length < 48) await turn();
      await turn();
      expect(new Map(reader.read().toSorted(([a], [b]) => a - b))).toEqual(expected);
      expect(released).toEqual(released.toSorted((a, b) => a - b));
    });
  });

  it('that is invalid sends nothing, and neither does a closed socket', async () => {
    const { socket, reader } = await open('127.0.0.1', 0);
    const path = socket.path('127.0.0.1', reader.port);
    for (const hopLimit of [0, 256, 1.5, Number.NaN]) socket.sendWithHopLimit!(Uint8Array.of(1), path, hopLimit);
    socket.close();
    socket.sendWithHopLimit!(Uint8Array.of(1), path, 4);
    await turn();
    expect(reader.read()).toEqual([]);
  });
});
