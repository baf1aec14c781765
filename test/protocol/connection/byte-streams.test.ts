/** Byte streams over two real endpoints: port and acceptance, refusal, limits, timeout, half close. */
import { describe, expect, it } from 'vitest';
import { Core, type CoreStreams } from '../../../bindings/index.ts';
import { ByteStreams } from '../../../protocol/connection/byte-streams.ts';
import type { Connection, ConnectionEvent, ConnectionOwner } from '../../../protocol/connection/index.ts';
import { Lifecycle } from '../../../protocol/connection/lifecycle.ts';
import { mostStreams } from '../../../protocol/endpoint/context.ts';
import type { EndpointConfig } from '../../../protocol/endpoint/index.ts';
import { StreamCode } from '../../../protocol/errors/index.ts';
import type { LinkOptions } from '../../../testing/index.ts';
import { dial, type EndpointFixture, type PolledEndpoint, pair, parameters } from '../../support/fixture/endpoints.ts';
import { seeds } from '../../support/tiered.ts';

const WINDOW = 16_384;

describe('opening a stream', () => {
  it('passes the port, and the zero byte accepts it', () => {
    const ends = connected(1);
    const { network, connection, accepted } = ends;
    for (const port of [0, 42, 0x8000_0000, 0xffff_ffff]) {
      const id = connection.streams.open(port);
      expect(id & 3).toBe(0);
      expect(network.run(() => ends.has('device', 'stream', id))).toBe(true);
      expect(ends.last('device', 'stream')).toEqual({ kind: 'stream', id, port });
      expect(ends.has('client', 'accepted', id)).toBe(false);
      expect(connection.streams.read(id, new Uint8Array(10))).toBe(0);
      accepted.streams.accept(id);
      expect(network.run(() => ends.has('client', 'accepted', id))).toBe(true);
    }
  });

  it('refuses an invalid port', () => {
    const { connection } = connected(2);
    for (const port of [-1, 2 ** 32, 1.5, Number.NaN]) {
      expect(() => connection.streams.open(port)).toThrow(expect.objectContaining({ name: 'LocalError', code: 'INVALID_ARGUMENT' }));
    }
  });

  it('allows sending up to the initial window before acceptance, and more after it', { tags: ['slow'] }, () => {
    const ends = connected(3);
    const { network, connection, accepted } = ends;
    const id = connection.streams.open(1);
    const data = pattern(100_000);
    let written = connection.streams.write(id, data);
    network.pass(500);
    written += connection.streams.write(id, data, written);
    network.pass(500);
    expect(ends.has('device', 'stream', id)).toBe(true);
    expect(accepted.streams.read(id, new Uint8Array(10))).toBe(0);
    expect(accepted.stats()!.bytesReceived).toBeLessThan(WINDOW + 6000);
    accepted.streams.accept(id);
    const received = ends.collect(accepted, id);
    network.onEvent = (node, of, event) => {
      if (node === ends.client && (event.kind === 'writable' || event.kind === 'accepted')) written += of.streams.write(id, data, written);
      received.pump(event);
    };
    expect(network.run(() => received.bytes.length === data.length)).toBe(true);
    expect(Uint8Array.from(received.bytes)).toEqual(data);
  });

  it('fails above the credit of the peer, until streams end', () => {
    const ends = connected(4, { device: { parameters: { ...parameters, maxStreams: 3 } } });
    const { network, connection, accepted } = ends;
    const ids = [1, 2, 3].map((port) => connection.streams.open(port));
    expect(connection.streams.open(4)).toBe(-1);
    network.pass(100);
    accepted.streams.refuse(ids[0]!, 0x2001);
    expect(network.run(() => ends.has('client', 'streams-available'))).toBe(true);
    expect(connection.streams.open(4)).toBeGreaterThan(0);
  });
});

describe('refusal', () => {
  it('reaches the opener as a reset with the code', () => {
    const ends = connected(5);
    const { network, connection, accepted } = ends;
    const id = connection.streams.open(7);
    connection.streams.write(id, pattern(1000));
    network.pass(100);
    accepted.streams.refuse(id, 0x2001);
    expect(network.run(() => ends.has('client', 'reset', id))).toBe(true);
    expect(ends.last('client', 'reset')).toEqual({ kind: 'reset', id, code: 0x2001 });
    expect(ends.has('client', 'accepted', id)).toBe(false);
  });

  it('happens above the limit of the endpoint, over all its connections and unseen by the application, until streams end', () => {
    const limits = { halfOpen: 64, retryAbove: 16, connections: 8, streams: 2 };
    const ends = connected(6, { device: { limits } });
    const { network, connection, accepted } = ends;
    const ids = [1, 2, 3].map((port) => connection.streams.open(port));
    network.pass(100);
    expect(ends.all('device', 'stream')).toHaveLength(2);
    expect(ends.all('client', 'reset')).toEqual([{ kind: 'reset', id: ids[2], code: 0x2002 }]);
    for (const id of ids.slice(0, 2)) accepted.streams.refuse(id, 0x2001);
    network.pass(100);
    connection.streams.open(4);
    network.pass(100);
    expect(ends.all('device', 'stream')).toHaveLength(3);
    limits.streams = 0;
    connection.streams.open(5);
    network.pass(100);
    expect(ends.all('device', 'stream')).toHaveLength(3);
  });

  it('does not occur within the credit of one connection, which is less than there is room for, nor elsewhere until all room is used', {
    tags: ['slow'],
  }, () => {
    const core = Core.create({ connections: 8, memory: 2 << 20 });
    const room = mostStreams(core);
    const credit = Math.floor((room * 2048) / 2880);
    const large = { core: Core.create({ connections: 8, memory: 8 << 20 }) };
    const ends = connected(6, { client: large, device: { core, parameters: { ...parameters, maxStreams: credit } } });
    const { network, client, device, connection } = ends;
    const fill = (of: Connection): number => {
      let count = 0;
      while (of.streams.open(count) >= 0) count++;
      network.pass(1000);
      return count;
    };
    expect(fill(connection)).toBe(credit);
    expect(ends.all('device', 'stream')).toHaveLength(credit);
    const next = dial(client, device);
    network.pass(300);
    fill(next);
    expect(ends.all('device', 'stream')).toHaveLength(room);
    const refused = ends.all('client', 'reset').map((event) => 'code' in event && event.code);
    expect(new Set(refused)).toEqual(new Set([StreamCode.STREAM_LIMIT]));
  });

  it('above the limit ends when the connection with those streams ends', () => {
    const limits = { halfOpen: 64, retryAbove: 16, connections: 8, streams: 2 };
    const ends = connected(6, { device: { limits } });
    const { network, client, device, connection } = ends;
    for (const port of [1, 2]) connection.streams.open(port);
    network.pass(100);
    connection.close(0, '', network.now);
    network.pass(10_000);
    const next = dial(client, device);
    network.pass(300);
    for (const port of [3, 4]) next.streams.open(port);
    network.pass(100);
    expect(ends.all('device', 'stream').map((event) => 'port' in event && event.port)).toEqual([1, 2, 3, 4]);
  });

  it('is also any other byte in place of the zero byte', () => {
    const calls: string[] = [];
    const core = {
      open: () => 4,
      raiseWindow: () => {},
      write: (_id: number, data: Uint8Array) => data.length,
      read: (_id: number, target: Uint8Array) => target.fill(7).length,
      stop: (id: number, code: number) => calls.push(`stop ${id} ${code}`),
      reset: (id: number, code: number) => calls.push(`reset ${id} ${code}`),
    } as unknown as CoreStreams;
    const life = new Lifecycle({ touched: () => {} } as ConnectionOwner);
    const streams = new ByteStreams(core, life, { open: 0, max: () => 1, window: WINDOW }, false);
    const id = streams.open(1);
    streams.readable(id);
    expect([life.nextEvent(), life.nextEvent()]).toEqual([{ kind: 'reset', id, code: StreamCode.BAD_PREFACE }, undefined]);
    expect(calls).toEqual([`stop 4 ${StreamCode.BAD_PREFACE}`, `reset 4 ${StreamCode.BAD_PREFACE}`]);
  });

  it('follows at both ends after 30 s without acceptance', () => {
    const ends = connected(7);
    const { network, connection } = ends;
    const id = connection.streams.open(1);
    network.pass(29_000);
    expect(ends.has('client', 'reset', id)).toBe(false);
    network.pass(2000);
    expect(ends.last('client', 'reset')).toEqual({ kind: 'reset', id, code: 0x2004 });
    expect(ends.last('device', 'reset')).toEqual({ kind: 'reset', id, code: 0x2004 });
  });

  it('is not needed where no streams are accepted: the peer gets no credit', () => {
    const { connection } = connected(8, { device: { acceptStreams: false } });
    expect(connection.streams.open(1)).toBe(-1);
  });

  it('is not needed for a responder, which cannot open streams', () => {
    const { accepted } = connected(9);
    expect(accepted.streams.open(1)).toBe(-1);
  });
});

describe('an accepted stream', () => {
  it('carries bytes both ways and closes each direction separately', { tags: ['slow'] }, () => {
    for (const seed of seeds(1, 6)) {
      const ends = connected(seed, { link: { loss: 0.05, reorder: 1, reorderDelay: 20, duplicate: 0.05 } });
      const { network, connection, accepted } = ends;
      const id = connection.streams.open(1);
      connection.streams.write(id, pattern(5000));
      connection.streams.finish(id);
      expect(network.run(() => ends.has('device', 'stream', id))).toBe(true);
      const up = ends.collect(accepted, id);
      const down = ends.collect(connection, id);
      network.onEvent = (_, __, event) => {
        up.pump(event);
        down.pump(event);
      };
      accepted.streams.accept(id);
      expect(network.run(() => up.ended && ends.has('client', 'finished', id))).toBe(true);
      expect(Uint8Array.from(up.bytes)).toEqual(pattern(5000));
      expect(down.ended).toBe(false);
      accepted.streams.write(id, pattern(3000));
      accepted.streams.finish(id);
      expect(network.run(() => down.ended && ends.has('device', 'finished', id))).toBe(true);
      expect(Uint8Array.from(down.bytes)).toEqual(pattern(3000));
    }
  });

  it('is reset and stopped at the other end when either end aborts it', () => {
    const ends = connected(11);
    const { network, connection, accepted } = ends;
    const [first, second] = [connection.streams.open(1), connection.streams.open(2)];
    network.pass(100);
    for (const id of [first, second]) accepted.streams.accept(id);
    network.pass(100);
    connection.streams.reset(first, 0x2003);
    connection.streams.stop(first, 0x2003);
    accepted.streams.reset(second, 0x2003);
    accepted.streams.stop(second, 0x2003);
    network.pass(100);
    expect(ends.has('device', 'reset', first)).toBe(true);
    expect(ends.has('client', 'reset', second)).toBe(true);
    expect([connection.state, accepted.state]).toEqual(['open', 'open']);
  });
});

describe('messages and datagrams', () => {
  it('arrive both ways, also the largest', () => {
    const ends = connected(12);
    const { network, connection, accepted } = ends;
    const large = pattern(66_560);
    expect(connection.messages.send(large)).toBeGreaterThanOrEqual(0);
    expect(() => connection.messages.send(new Uint8Array(66_561))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    accepted.messages.send(new Uint8Array(0));
    expect(accepted.messages.sendDatagram(pattern(500))).toBe(true);
    expect(network.run(() => ends.has('device', 'message') && ends.has('client', 'message') && ends.has('client', 'datagram'))).toBe(true);
    expect(ends.last('device', 'message')).toEqual({ kind: 'message', data: large });
    expect(ends.last('client', 'message')).toEqual({ kind: 'message', data: new Uint8Array(0) });
    expect(ends.last('client', 'datagram')).toEqual({ kind: 'datagram', data: pattern(500) });
  });
});

describe('after the end of a connection', () => {
  it('every call throws a local error and nothing more is reported', () => {
    const ends = connected(13);
    const { network, connection, client, device } = ends;
    const id = connection.streams.open(1);
    connection.close(0, '', network.now);
    connection.close(0, '', network.now);
    for (const call of [
      () => connection.streams.open(1),
      () => connection.streams.write(id, pattern(1)),
      () => connection.messages.send(pattern(1)),
    ]) {
      expect(call).toThrow(expect.objectContaining({ name: 'LocalError', code: 'CLOSED' }));
    }
    expect(network.run(() => client.endpoint.idle && device.endpoint.idle)).toBe(true);
    expect(client.kinds(connection).filter((kind) => kind === 'closed')).toHaveLength(1);
    expect(client.kinds(connection).at(-1)).toBe('closed');
  });

  it('a reason from the other end is cut and free of control characters', () => {
    const { network, connection, device } = connected(14);
    connection.close(7, `\u001b[31m${'x'.repeat(1000)}`, network.now);
    network.pass(100);
    const closed = device.find('closed')!;
    expect(closed.code).toBe(7);
    expect(closed.reason).toMatch(/^\?\[31mx{150,200}$/);
  });

  it('a connection that receives nothing ends with TIMEOUT', () => {
    const keepAlive = { interval: 1000, retryInterval: 100, maxRetries: 3 };
    const { network, connection, client } = connected(15, { client: { keepAlive } });
    network.tap = () => false;
    network.pass(5000);
    expect(client.find('closed')).toMatchObject({ error: { code: 'TIMEOUT' } });
    expect(connection.state).toBe('closed');
  });

  it('keep-alive given later works too', () => {
    const { network, connection, client } = connected(16);
    connection.setKeepAlive({ interval: 1000, retryInterval: 100, maxRetries: 3 }, network.now);
    network.pass(10_000);
    expect(connection.state).toBe('open');
    network.tap = () => false;
    network.pass(5000);
    expect(client.find('closed')).toMatchObject({ error: { code: 'TIMEOUT' } });
  });
});

interface Collector {
  readonly bytes: number[];
  ended: boolean;
  pump(event: ConnectionEvent): void;
}

interface OpenPair {
  network: EndpointFixture;
  client: PolledEndpoint;
  device: PolledEndpoint;
  connection: Connection;
  accepted: Connection;
  all(end: 'client' | 'device', kind: ConnectionEvent['kind']): ConnectionEvent[];
  last(end: 'client' | 'device', kind: ConnectionEvent['kind']): ConnectionEvent | undefined;
  has(end: 'client' | 'device', kind: ConnectionEvent['kind'], id?: number): boolean;
  collect(connection: Connection, id: number): Collector;
}

function connected(
  seed: number,
  options: { link?: LinkOptions; client?: Partial<EndpointConfig>; device?: Partial<EndpointConfig> } = {},
): OpenPair {
  const { network, client, device } = pair(seed, options);
  const connection = dial(client, device);
  expect(network.run(() => device.accepted.length === 1)).toBe(true);
  network.pass(300);
  const all: OpenPair['all'] = (end, kind) =>
    (end === 'client' ? client : device).events.map(([, event]) => event).filter((event) => event.kind === kind);
  return {
    network,
    client,
    device,
    connection,
    accepted: device.accepted[0]!,
    all,
    last: (end, kind) => all(end, kind).at(-1),
    has: (end, kind, id) => all(end, kind).some((event) => id === undefined || ('id' in event && event.id === id)),
    collect: (of, id) => {
      const buffer = new Uint8Array(4096);
      const collector: Collector = {
        bytes: [],
        ended: false,
        pump: (event) => {
          if (!('id' in event) || event.id !== id || collector.ended) return;
          for (let count = of.streams.read(id, buffer); count !== 0; count = of.streams.read(id, buffer)) {
            if (count < 0) {
              collector.ended = true;
              return;
            }
            collector.bytes.push(...buffer.subarray(0, count));
          }
        },
      };
      return collector;
    },
  };
}

function pattern(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) & 0xff);
}
