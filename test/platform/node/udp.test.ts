/**
 * UDP sockets of Node, with `dgram` and with system calls of their own: families, ports, order of releases, errors with
 * advice.
 */
import { createSocket, Socket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type BindOptions, type BoundSocket, type Log, silentLog } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/environment.ts';
import { bindError, isMissingFamily } from '../../../platform/node/udp-errors.ts';
import type { Path } from '../../../protocol/path.ts';

let environment = nodeEnvironment();
const opened: { close(): void }[] = [];
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
const loopbacks = ['127.0.0.1', ...(hasIpv6 ? ['::1'] : [])];

afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
});

async function bind(options: Partial<BindOptions> = {}): Promise<BoundSocket> {
  const socket = await environment.network.bind({ port: 0, bulk: true, receive: () => {}, ...options });
  opened.push(socket);
  return socket;
}

/** A bare `dgram` socket that holds a port. */
async function hold(type: 'udp4' | 'udp6', port = 0): Promise<Socket> {
  const socket = createSocket({ type, ipv6Only: type === 'udp6' });
  socket.bind(port);
  await once(socket, 'listening');
  opened.push(socket);
  return socket;
}

/** Throws when the port is taken. */
async function tryPort(type: 'udp4' | 'udp6', port: number): Promise<void> {
  await hold(type, port);
  opened.pop()!.close();
}

describe.each([
  ['dgram', Number.POSITIVE_INFINITY],
  ['system calls', 0],
])('UDP in Node with %s', (_, systemCallsAfter) => {
  beforeEach(() => {
    environment = nodeEnvironment({ systemCallsAfter });
  });

  it('drops datagrams from port 0, which cannot be answered', async () => {
    const binds = vi.spyOn(Socket.prototype, 'bind');
    const ports: number[] = [];
    await bind({ host: '127.0.0.1', receive: (_, path) => ports.push(path.port) });
    const [socket] = binds.mock.contexts as Socket[];
    binds.mockRestore();
    for (const port of [0, 4433]) socket!.emit('message', Buffer.of(1), { address: '127.0.0.1', family: 'IPv4', port, size: 1 });
    expect(ports).toEqual([4433]);
  });

  it.each(loopbacks)(
    'echoes 1000 datagrams over %s, byte for byte, each released once and in order',
    { tags: ['slow'] },
    async (address) => {
      const server: BoundSocket = await bind({
        receive: (datagram, path) => server.send(new Uint8Array(datagram), 0, datagram.length, path, () => {}),
      });
      const received = new Map<number, Uint8Array>();
      const released: number[] = [];
      const progress = new EventEmitter();
      const client = await bind({
        receive: (datagram) => {
          received.set(new DataView(datagram.buffer, datagram.byteOffset).getUint32(0), new Uint8Array(datagram));
          progress.emit('datagram');
        },
      });
      const path = client.path(address, server.port);
      const buffer = new Uint8Array(1000 * 40);
      const view = new DataView(buffer.buffer);
      for (let i = 0; i < 1000; i++) {
        buffer.fill(i, i * 40, i * 40 + 40);
        view.setUint32(i * 40, i);
        client.send(buffer, i * 40, 4 + (i % 37), path, (offset) => released.push(offset));
        expect(released.length).toBeLessThanOrEqual(i);
        // in steps, so that default receive buffers are enough
        while (i % 50 === 49 && received.size <= i) await once(progress, 'datagram');
      }
      expect(released).toEqual(Array.from({ length: 1000 }, (_, i) => i * 40));
      for (let i = 0; i < 1000; i++)
        expect(Array.from(received.get(i)!)).toEqual(Array.from(buffer.subarray(i * 40, i * 40 + 4 + (i % 37))));
    },
  );

  it('listens on one address only', async () => {
    const socket = await bind({ host: '127.0.0.1' });
    expect(opened).toHaveLength(1);
    if (hasIpv6) await tryPort('udp6', socket.port);
    const released: number[] = [];
    socket.send(new Uint8Array(1), 0, 1, socket.path('::1', 9), (offset) => released.push(offset));
    await new Promise((resolve) => setImmediate(resolve));
    expect(released).toEqual([0]);
  });

  it('interns paths: one object per peer, also for another spelling and for the sender of a datagram', async () => {
    const arrivals = new EventEmitter();
    const [a, b] = [await bind(), await bind({ receive: (_, path) => void arrivals.emit('path', path) })];
    for (const address of loopbacks) {
      const arrival = once(arrivals, 'path') as Promise<[Path]>;
      a.send(Uint8Array.of(1), 0, 1, a.path(address, b.port), () => {});
      const [path] = await arrival;
      expect(path).toBe(b.path(address, a.port));
      expect(path).toMatchObject({ kind: 'udp', address, port: a.port, socket: b.index, local: false });
    }
    expect(a.path('::ffff:127.0.0.1', 5)).toBe(a.path('127.0.0.1', 5));
    expect(a.path('127.0.0.1', 5)).not.toBe(a.path('127.0.0.1', 6));
    expect(a.path('127.0.0.1', 5)).not.toBe(b.path('127.0.0.1', 5));
    expect(a.path('FE80::1', 5).key).toBe(`udp:${a.index}:[fe80::1]:5`);
    expect(() => a.path('localhost', 5)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(() => a.path('127.0.0.1', 65_536)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('releases unsendable packets, and those in flight when it is closed', async () => {
    const socket = await bind({ host: '127.0.0.1' });
    const released: number[] = [];
    const path = socket.path('127.0.0.1', socket.port);
    const large = new Uint8Array(70_000);
    socket.send(large, 7, 69_000, path, (offset) => released.push(offset));
    for (let offset = 0; offset < 200; offset++) socket.send(large, offset, 1, path, (given) => released.push(given));
    socket.close();
    socket.send(large, 300, 1, path, (given) => released.push(given));
    socket.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(released).toEqual([7, ...Array.from({ length: 200 }, (_, i) => i), 300]);
  });

  it('sends the current contents of a slot, whatever it held and however long it was before', async () => {
    const arrivals = new EventEmitter();
    const to = await bind({ receive: (datagram) => void arrivals.emit('datagram', datagram) });
    const from = await bind({ host: '127.0.0.1' });
    const path = from.path('127.0.0.1', to.port);
    const core = new Uint8Array(1 << 20);
    for (const [offset, length] of [
      [64, 10],
      [64, 20],
      [64, 10],
      [55, 19],
      [64, 10],
    ] as const) {
      core.fill(length, offset, offset + length);
      const arrival = once(arrivals, 'datagram') as Promise<[Uint8Array]>;
      from.send(core, offset, length, path, () => {});
      expect([...(await arrival)[0]]).toEqual(new Array(length).fill(length));
    }
  });

  it('delivers nothing after close', async () => {
    const seen: number[] = [];
    const socket: BoundSocket = await bind({
      receive: (datagram) => {
        seen.push(datagram[0]!);
        socket.close();
      },
    });
    const arrivals = new EventEmitter();
    const [marked, other] = [await bind({ receive: () => arrivals.emit('marker') }), await bind()];
    const marker = once(arrivals, 'marker');
    for (let i = 0; i < 10; i++) other.send(Uint8Array.of(i), 0, 1, other.path('127.0.0.1', socket.port), () => {});
    other.send(Uint8Array.of(10), 0, 1, other.path('127.0.0.1', marked.port), () => {});
    await marker;
    expect(seen).toEqual([0]);
  });
});

describe('UDP in Node', () => {
  beforeEach(() => {
    environment = nodeEnvironment();
  });

  it('binds the same free port for IPv4 and IPv6', async () => {
    const socket = await bind();
    expect(socket.port).toBeGreaterThan(0);
    await expect(tryPort('udp4', socket.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
    if (hasIpv6) await expect(tryPort('udp6', socket.port)).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  it('reports that a port is in use, whichever family has it', async () => {
    for (const type of hasIpv6 ? (['udp4', 'udp6'] as const) : (['udp4'] as const)) {
      const { port } = (await hold(type)).address();
      await expect(bind({ port })).rejects.toMatchObject({
        code: 'PORT_IN_USE',
        message: `UDP port ${port} is in use: stop what uses it, or choose another one (0 takes a free one)`,
      });
      // no socket of the other family is left open
      if (type === 'udp6') await tryPort('udp4', port);
    }
  });

  it.each([
    [{ port: -1 }, '-1 is not a port number: use 1 to 65535, or 0 for a free one'],
    [{ port: 65_536 }, '65536 is not a port number: use 1 to 65535, or 0 for a free one'],
    [{ port: 1.5 }, '1.5 is not a port number: use 1 to 65535, or 0 for a free one'],
    [{ host: 'localhost' }, 'localhost is not a numeric IP address to listen on'],
    [{ host: '192.0.2.77' }, '192.0.2.77 is not an address of this host: choose one of its own'],
    [{ host: '2001:db8::77' }, '2001:db8::77 is not an address of this host: choose one of its own'],
  ])('refuses %j with a clear line', async (options, message) => {
    await expect(bind(options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });

  it('has a clear message for a privileged port and for unforeseen errors', () => {
    const error = (code: string) => bindError(Object.assign(new Error('bind failed'), { code }), { port: 53, receive: () => {} });
    expect(error('EACCES')).toMatchObject({ code: 'PRIVILEGED_PORT', message: expect.stringContaining('may not open UDP port 53') });
    expect(error('EMFILE')).toMatchObject({ code: 'UNKNOWN', message: 'UDP port 53 cannot be opened: bind failed' });
    expect(isMissingFamily(Object.assign(new Error(), { code: 'EAFNOSUPPORT' }))).toBe(true);
    expect(isMissingFamily(Object.assign(new Error(), { code: 'EADDRINUSE' }))).toBe(false);
  });

  it('calls local only near peers of a local socket', async () => {
    const [local, other] = [await bind({ local: true }), await bind()];
    const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    for (const { address } of own) {
      expect([address, local.path(address, 1).local]).toEqual([address, true]);
      expect(other.path(address, 1).local).toBe(false);
    }
    expect(local.path('127.1.2.3', 1).local).toBe(true);
    expect(local.path('203.0.113.9', 1).local).toBe(false);
    expect(local.path('2001:db8:ffff::1', 1).local).toBe(false);
  });

  it('releases packets although no caller waits for them, also when the kernel accepts no more', async () => {
    const socket = await bind({ host: '127.0.0.1' });
    const path = socket.path('127.0.0.1', socket.port);
    const core = new Uint8Array(1 << 20);
    const released: number[] = [];
    const releases = new EventEmitter();
    const queue = vi.spyOn(Socket.prototype, 'getSendQueueCount');
    // Three of five are reported as queued at first, then one, then none. Releases at each check of the queue:
    const seen: number[] = [];
    queue.mockImplementation(() => [3, 1, 0][seen.push(released.length) - 1] ?? 0);
    const release = (offset: number) => {
      if (released.push(offset / 2048) === 5) releases.emit('all');
    };
    for (let i = 0; i < 5; i++) socket.send(core, i * 2048, 1000, path, release);
    await once(releases, 'all');
    expect(seen).toEqual([0, 2, 4]);
    queue.mockRestore();
    expect(released).toEqual([0, 1, 2, 3, 4]);
  });

  it.each([undefined, 262_144])('requests a receive buffer and reports its size, of %s bytes', async (receiveBuffer) => {
    const lines: [string, Record<string, unknown> | undefined][] = [];
    const log: Log = {
      ...silentLog,
      info: (message, fields) => lines.push([message, fields]),
      debug: (...line) => lines.push(line as never),
    };
    const { network } = nodeEnvironment({ log, ...(receiveBuffer === undefined ? {} : { receiveBuffer }) });
    for (let i = 0; i < 2; i++) opened.push(await network.bind({ port: 0, host: '127.0.0.1', receive: () => {} }));
    const asked = receiveBuffer ?? 8 * 1024 * 1024;
    const { receiveBuffer: granted } = opened.at(-1) as BoundSocket;
    expect(granted).toBeGreaterThanOrEqual(65_536);
    expect(lines.filter(([message]) => message === 'UDP buffers').map(([, fields]) => fields)).toEqual(
      Array.from({ length: 2 }, () => expect.objectContaining({ asked, granted })),
    );
    // A small buffer is reported once, with a remedy.
    const warnings = lines.filter(([message]) => message.startsWith('UDP receive buffer is smaller'));
    expect(warnings.length).toBe(granted! < asked ? 1 : 0);
    for (const [, fields] of warnings) expect(fields).toMatchObject({ remedy: expect.stringMatching(/rmem_max|limit/) });
  });

  it('halves a size that the system refuses', async () => {
    const set = vi.spyOn(Socket.prototype, 'setRecvBufferSize');
    set.mockImplementationOnce(() => {
      throw new Error('ENOBUFS');
    });
    await bind({ host: '127.0.0.1' });
    expect(set.mock.calls).toEqual([[8 * 1024 * 1024], [4 * 1024 * 1024]]);
    set.mockRestore();
  });

  it.each([0, 65_535, 2 ** 30 + 1, 1.5])('refuses a buffer of %d bytes', (size) => {
    for (const options of [{ receiveBuffer: size }, { sendBuffer: size }])
      expect(() => nodeEnvironment(options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it.each([1279, 65_536, 1400.5])('refuses a link MTU of %d bytes', (linkMtu) => {
    expect(() => nodeEnvironment({ linkMtu })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('expects of a path the MTU of its link', async () => {
    const of = async (linkMtu: number, address: string) => {
      const socket = await nodeEnvironment({ linkMtu }).network.bind({ port: 0, receive: () => {} });
      opened.push(socket);
      return socket.path(address, 1).maxUdpPayload;
    };
    expect(await of(9000, '192.0.2.1')).toBe(8972);
    expect(await of(1280, '2001:db8::1')).toBe(1232);
    expect(await of(1280, '127.0.0.1')).toBe(65_000);
    const unstated = (await bind()).path('192.0.2.1', 1).maxUdpPayload!;
    expect(unstated).toBeLessThanOrEqual(1472);
    expect(unstated).toBeGreaterThanOrEqual(1252);
  });

  it('numbers its sockets without repetition', async () => {
    const first = await bind();
    first.close();
    expect((await bind()).index).toBeGreaterThan(first.index);
    expect(silentLog.error('')).toBeUndefined();
  });
});
