/**
 * Sockets that make system calls of their own, on real Linux: they find their descriptor, switch under load, and carry
 * bulk data unchanged. Elsewhere there are none, and everything goes through `dgram`.
 */
import { createSocket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { createRequire } from 'node:module';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import { type BindOptions, type BoundSocket, type Log, silentLog } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/environment.ts';
import { descriptorOf } from '../../../platform/node/native/descriptor.ts';
import { loadSystemCalls, type SystemCalls } from '../../../platform/node/native/system-calls.ts';

const missing = process.platform !== 'linux' ? 'Linux' : isInstalled(`@koromix/koffi-linux-${process.arch}`) ? undefined : 'koffi';
const calls = await loadSystemCalls(silentLog);
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
const loopbacks = ['127.0.0.1', ...(hasIpv6 ? ['::1'] : [])];
const opened: { close(): void }[] = [];

afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
  said = [];
});

/** Log lines about system calls. */
let said: string[] = [];
const log: Log = { ...silentLog, debug: (message) => void (message.includes('system calls') && said.push(message)) };

async function bind(systemCallsAfter: number, options: Partial<BindOptions> = {}): Promise<BoundSocket> {
  const socket = await nodeEnvironment({ log, systemCallsAfter }).network.bind({ port: 0, bulk: true, receive: () => {}, ...options });
  opened.push(socket);
  return socket;
}

function isInstalled(name: string): boolean {
  try {
    return createRequire(import.meta.url).resolve(name) !== '';
  } catch {
    return false;
  }
}

/**
 * Sends packets of these lengths, each with its number, in turns of a few so that default buffers are enough. @returns
 * numbers received and released
 */
async function carry(lengths: readonly number[], address: string, after: { from: number; to: number }) {
  const received: number[] = [];
  const released: number[] = [];
  const progress = new EventEmitter();
  const to = await bind(after.to, {
    receive: (datagram) => {
      const number = new DataView(datagram.buffer, datagram.byteOffset).getUint32(0);
      expect(datagram.subarray(4).every((byte) => byte === (number & 255))).toBe(true);
      expect(datagram.length).toBe(lengths[number]);
      received.push(number);
      progress.emit('datagram');
    },
  });
  const from = await bind(after.from);
  const path = from.path(address, to.port);
  const memory = new Uint8Array(1 << 20);
  for (const [number, length] of lengths.entries()) {
    const offset = (number % 500) * 2048;
    memory.fill(number, offset, offset + length);
    new DataView(memory.buffer).setUint32(offset, number);
    from.send(memory, offset, length, path, (given) => released.push(given / 2048));
    while (number % 50 === 49 && received.length <= number) await once(progress, 'datagram');
  }
  while (received.length < lengths.length) await once(progress, 'datagram');
  return { received, released };
}

describe.skipIf(missing !== undefined)(`system calls of a socket${missing === undefined ? '' : ` (skipped: needs ${missing})`}`, () => {
  it('are available where their requirements are met', () => {
    expect(calls).not.toBeNull();
  });

  it('finds the descriptor of a socket among all of the process', async () => {
    const sockets = [];
    for (const address of loopbacks)
      for (let i = 0; i < 3; i++) {
        const socket = createSocket({ type: address.includes(':') ? 'udp6' : 'udp4' }).bind(0, address);
        await once(socket, 'listening');
        sockets.push(socket);
      }
    opened.push(...sockets);
    const found = sockets.map((socket) => descriptorOf(socket, calls as SystemCalls));
    expect(new Set(found).size).toBe(sockets.length);
    expect(Math.min(...found)).toBeGreaterThan(2);
  });

  it('finds none where two have one address', async () => {
    const first = createSocket({ type: 'udp4', reuseAddr: true }).bind(0, '127.0.0.1');
    await once(first, 'listening');
    const second = createSocket({ type: 'udp4', reuseAddr: true }).bind(first.address().port, '127.0.0.1');
    await once(second, 'listening');
    opened.push(first, second);
    expect(descriptorOf(first, calls as SystemCalls)).toBe(-1);
  });

  it.each(loopbacks)('carries bulk over %s unchanged and releases it in order, from the start', { tags: ['slow'] }, async (address) => {
    const lengths = Array.from({ length: 3000 }, (_, i) => (i % 7 === 6 ? 20 + (i % 1000) : i % 2000 < 1000 ? 1452 : 1200));
    const { received, released } = await carry(lengths, address, { from: 0, to: 0 });
    expect(received).toEqual(lengths.map((_, i) => i));
    expect(released).toEqual(lengths.map((_, i) => i % 500));
  });

  it('switches under load, at either end, without loss and in order', { tags: ['slow'] }, async () => {
    const lengths = new Array<number>(3000).fill(1400);
    const { received, released } = await carry(lengths, '127.0.0.1', { from: 300, to: 500 });
    expect(received).toEqual(lengths.map((_, i) => i));
    expect(released).toEqual(lengths.map((_, i) => i % 500));
    expect(said.length).toBe(2);
  });

  it('logs the switch once for each family', async () => {
    await bind(0, { host: '127.0.0.1' });
    expect(said).toEqual(['UDP socket uses its own system calls']);
  });

  it('stays with dgram where batches of datagrams are disabled', async () => {
    await bind(0, { host: '127.0.0.1', bulk: false });
    expect(said).toEqual([]);
  });

  it('asks the system for zones', () => {
    const { if_nametoindex, if_indextoname } = calls as SystemCalls;
    const name = new Uint8Array(16);
    expect(if_nametoindex('no-such-zone')).toBe(0);
    expect(if_indextoname(4_000_000_000, name)).toBe(false);
    expect(if_indextoname(if_nametoindex('lo'), name)).toBe(true);
    expect(String.fromCharCode(...name.subarray(0, 3))).toBe('lo\0');
  });

  it('carries datagrams of 65,000 bytes and of none', async () => {
    const arrivals = new EventEmitter();
    const seen: number[] = [];
    const to = await bind(0, { receive: (datagram) => void (seen.push(datagram.length) === 5 && arrivals.emit('all')) });
    const from = await bind(0);
    const path = from.path('127.0.0.1', to.port);
    const all = once(arrivals, 'all');
    for (const length of [65_000, 0, 65_000, 1, 0]) from.send(new Uint8Array(1 << 20), 0, length, path, () => {});
    await all;
    expect(seen).toEqual([65_000, 0, 65_000, 1, 0]);
  });
});

describe('without system calls', () => {
  it.each([-1, 0.5, Number.NaN])('refuses %d as a number of datagrams', (systemCallsAfter) => {
    expect(() => nodeEnvironment({ systemCallsAfter })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('carries everything through dgram when disabled', { tags: ['slow'] }, async () => {
    const never = { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY };
    const { received } = await carry(new Array<number>(1500).fill(100), '127.0.0.1', never);
    expect(received.length).toBe(1500);
    expect(said).toEqual([]);
  });
});
