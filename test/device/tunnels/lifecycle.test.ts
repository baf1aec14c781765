/** What a tunnel connection holds, and for how long: the parts alone, without sockets. */
import { beforeEach, expect, test } from 'vitest';
import { Authorization } from '../../../device/authorization.ts';
import { CoapResources } from '../../../device/coap-resources.ts';
import { Connections, type DeviceConnection } from '../../../device/connections.ts';
import { StreamListeners } from '../../../device/streams.ts';
import { TunnelConcurrencyLimit } from '../../../device/tunnels/concurrency-limit.ts';
import { type TcpTunnelService, type TunnelConnection, Tunnels } from '../../../device/tunnels/tunnels.ts';
import { silentLog } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { LocalError, StreamCode, streamError } from '../../../protocol/errors/index.ts';
import { Deferred } from '../../../runtime/deferred.ts';
import { Emitter } from '../../../runtime/emitter.ts';
import { IncomingStream } from '../../../runtime/session/incoming-stream.ts';
import type { Session, Stream } from '../../../runtime/session/index.ts';
import { noPaths } from '../../support/no-paths.ts';

const PORT = 0x8000_0000;
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** TCP connections made so far. */
let made: { aborts: number; end: () => void }[];
let streams: StreamListeners;
let tunnels: Tunnels<TcpTunnelService>;
let concurrency: TunnelConcurrencyLimit;
let authorization: Authorization;

beforeEach(() => {
  made = [];
  streams = new StreamListeners(silentLog);
  const { clock } = nodeEnvironment();
  authorization = new Authorization({ clock, log: silentLog }, () => {});
  const resources = new CoapResources(new Connections(silentLog, { wallTime: () => 0 }), silentLog, clock, authorization);
  const resolve = async (): Promise<string[]> => ['192.0.2.1'];
  concurrency = new TunnelConcurrencyLimit();
  tunnels = new Tunnels({ kind: 'TCP', authorization, streams, resources, concurrency, connect: async () => tcp(), resolve, extra: {} });
  tunnels.add({ id: 'web', type: 'http', host: '127.0.0.1', port: 80 });
});

function tcp(): TunnelConnection {
  const ended = new Deferred<void>();
  const connection = { aborts: 0, end: () => ended.resolve() };
  made.push(connection);
  const abort = (): void => {
    connection.aborts++;
    ended.resolve();
  };
  return { join: () => ended.promise, abort };
}

let clients = 0;

/** A client's connection, and a function that ends it. @param key of the client; default: a new one */
function client(key = String(++clients)): { connection: DeviceConnection; close: () => void } {
  const events = new Emitter<{ closed: null }>(silentLog);
  const closed = new Deferred<null>();
  const session = { on: events.on.bind(events), closed: closed.promise, isOpen: true, peer: { fingerprint: key } } as unknown as Session;
  const close = (): void => {
    events.emit('closed', null);
    closed.resolve(null);
  };
  return { connection: new Connections(silentLog, { wallTime: () => 0 }).add(session, noPaths), close };
}

/**
 * A stream to the service arrives.
 * @param gaveUp the client aborts it before it is accepted
 * @returns its outcome: undefined while undecided, 0 accepted, else the code of the refusal
 */
function arrive(connection: DeviceConnection, gaveUp = false, port = PORT): () => number | undefined {
  let fate: number | undefined;
  const accept = (): Stream => {
    if (gaveUp) throw new LocalError('STOPPED', 'the other end gave the stream up');
    fate = 0;
    return { abort: () => {} } as Stream;
  };
  const refuse = (code: number): void => {
    fate = code;
  };
  streams.arrived(new IncomingStream(port, { accept, refuse }), connection);
  return () => fate;
}

test('a tunnel connection that ended holds nothing of the client connection', async () => {
  authorization.listen(() => true);
  const { connection, close } = client();
  arrive(connection);
  await settled();
  made[0]!.end();
  await settled();
  const before = made[0]!.aborts;
  close();
  await settled();
  expect(made[0]!.aborts).toBe(before);
});

test('a running tunnel connection ends with the client connection', async () => {
  authorization.listen(() => true);
  const { connection, close } = client();
  arrive(connection);
  await settled();
  close();
  expect(made[0]!.aborts).toBe(1);
});

test('a tunnel connection that waits for permission takes no slot from one that has it', async () => {
  const stranger = client().connection;
  authorization.listen(({ connection }) => (connection === stranger ? new Promise(() => {}) : true));
  tunnels.limit('http', 1);
  const waiting = arrive(stranger);
  await settled();
  const friend = arrive(client().connection);
  const second = arrive(client().connection);
  await settled();
  expect([waiting(), friend(), second()]).toEqual([undefined, 0, StreamCode.TUNNEL_LIMIT]);
});

test('a tunnel connection whose client gave up during setup is closed, and holds nothing', async () => {
  authorization.listen(() => true);
  tunnels.limit('http', 2);
  const { connection, close } = client();
  for (let attempt = 0; attempt < 8; attempt++) {
    arrive(connection, true);
    await settled();
  }
  expect(made.map(({ aborts }) => aborts)).toEqual(Array(8).fill(1));
  expect(tunnels.open('web')).toBe(0);
  close();
  expect(made.map(({ aborts }) => aborts)).toEqual(Array(8).fill(1));
});

test('one client cannot take all slots: a device has 768, and one key gets no more than remain free', async () => {
  authorization.listen(() => true);
  const fates = (connection: DeviceConnection, count: number) => Array.from({ length: count }, () => arrive(connection));
  const accepted = async (arrived: (() => number | undefined)[]): Promise<number> => {
    await settled();
    return arrived.filter((fate) => fate() === 0).length;
  };
  // Two connections with one key count as one client.
  const [first, again] = [client('greedy').connection, client('greedy').connection];
  expect(await accepted([...fates(first, 300), ...fates(again, 300)])).toBe(385);
  expect(await accepted(fates(client('owner').connection, 10))).toBe(10);
  const late = arrive(again);
  await settled();
  expect(late()).toBe(StreamCode.TUNNEL_LIMIT);
  for (const { end } of made) end();
  await settled();
  expect(await accepted(fates(first, 10))).toBe(10);
});

test.each<[string, () => void, number]>([
  ['in all', () => Object.assign(concurrency, { capacity: 20 }), 11],
  ['of one client', () => Object.assign(concurrency, { perClient: 30 }), 30],
  ['of one client, above all', () => Object.assign(concurrency, { capacity: 20, perClient: 30 }), 20],
  ['of a service', () => tunnels.add({ id: 'two', type: 'http', host: '127.0.0.1', port: 80, maxConnections: 7 }), 7],
])('a limit %s is kept, its refusal says so, and what ends leaves at once', async (name, limit, count) => {
  authorization.listen(() => true);
  limit();
  const port = name === 'of a service' ? PORT + 1 : PORT;
  const { connection } = client();
  const fates = Array.from({ length: 40 }, () => arrive(connection, false, port));
  await settled();
  expect(fates.filter((fate) => fate() === 0)).toHaveLength(count);
  expect(fates.slice(count).map((fate) => fate())).toEqual(new Array(40 - count).fill(StreamCode.TUNNEL_LIMIT));
  expect(streamError(StreamCode.TUNNEL_LIMIT).message).toMatch(
    /limit of tunnel connections: .* --tunnel-connections or --tunnel-connections-per-client$/,
  );
  made[0]!.end();
  await settled();
  const next = arrive(connection, false, port);
  await settled();
  expect(next()).toBe(0);
});

test('a tunnel connection that is no longer allowed ends, and the others continue', async () => {
  const [first, second] = [client().connection, client().connection];
  let denied: DeviceConnection | null = null;
  authorization.listen(({ connection }) => connection !== denied);
  arrive(first);
  arrive(second);
  await settled();
  denied = first;
  authorization.reconsider();
  await settled();
  expect(made.map(({ aborts }) => aborts > 0)).toEqual([true, false]);
});

test('a tunnel connection whose permission ends during setup is refused', async () => {
  let allowed = true;
  authorization.listen(() => allowed);
  const fate = arrive(client().connection);
  allowed = false;
  authorization.reconsider();
  await settled();
  expect(fate()).toBe(StreamCode.FORBIDDEN);
  expect(made.every(({ aborts }) => aborts > 0)).toBe(true);
});
