/** Migration of a channel between UDP and WebSocket, in situations that a whole simulation does not reach. */
import { expect, test } from 'vitest';
import type { MessagePipe } from '../../../platform/environment.ts';
import { BlockedNetworks } from '../../../protocol/station-dial/index.ts';
import type { Host } from '../../../runtime/host/host.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { ChannelMigration } from '../../../runtime/station/channel-migration.ts';
import { WaysToStation } from '../../../runtime/station/ways.ts';
import { openWebSocket } from '../../../runtime/station/web-socket-dial.ts';
import type { WebSocketSocket } from '../../../runtime/websocket/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const station = { host: 'station', port: 4433, urlPort: 4433, fingerprint: 'ab'.repeat(32) };

/** A channel on a silent path with a session over it, and a host whose WebSockets open at once. */
function scene() {
  const simulation = nativeSimulation();
  const { clock } = simulation.host('client');
  const counts = { notes: 0 };
  const ends: string[] = [];
  const opened: { at: number; isOpen: boolean }[] = [];
  const openPipe = async (): Promise<MessagePipe> => {
    const socket = { at: clock.now(), isOpen: true };
    opened.push(socket);
    const close = (): void => {
      socket.isOpen = false;
    };
    return { index: 10 + opened.length, address: '', port: 1, proxy: null, send: () => {}, close };
  };
  const names: string[] = [];
  const asked: string[] = [];
  const environment = { clock, network: { openWebSocket: openPipe, resolve: async () => names } };
  const path = (address: string) => ({ kind: 'udp', name: address });
  const host = {
    environment,
    sockets: { bound: [{ path }], drop: () => {}, adopt: () => {}, unbind: async (socket: WebSocketSocket) => socket.close() },
    sessions: [{ noteChannelMigrated: () => counts.notes++, paths: {} }],
    routes: { channelOf: () => session },
    datagrams: { receive: () => {} },
  };
  const listeners: Record<string, (event: unknown) => void> = {};
  const session = {
    paths: {
      active: { kind: 'udp', name: 'first' },
      all: [] as unknown[],
      rtt: null,
      supplyIds: () => {},
      probe: () => true,
      add: (path: { kind: string; name: string }) => {
        if (path.kind === 'udp') asked.push(path.name);
        return session.paths.all.push(path) > 0;
      },
      remove: () => {},
      stats: () => ({ packetsSent: 0, packetsReceived: 0 }),
    },
    on: (name: string, listener: (event: unknown) => void) => {
      listeners[name] = listener;
    },
    end: (error: Error) => ends.push(error.message),
  };
  const ways = new WaysToStation(station, environment as never, new BlockedNetworks());
  const to = { host: host as unknown as Host, station, ways };
  new ChannelMigration({ session: session as unknown as Session, webSocket: null, ...to });
  const emit = (name: string, event: object = {}): void => listeners[name]?.(event);
  return { simulation, clock, host, session, opened, counts, ends, emit, to, names, asked };
}

test('a challenge to a path that the channel has left has no effect on the next path', async () => {
  const { simulation, session, opened, emit } = scene();
  emit('suspected');
  await simulation.run(500);
  session.paths.active = { kind: 'udp', name: 'second' };
  emit('path', { path: session.paths.active });
  await simulation.run(400);
  emit('suspected');
  await simulation.run(5000);
  expect(opened.map(({ at }) => at)).toEqual([1900]);
});

test('a WebSocket that is closed while it is challenged has failed: another one is opened', async () => {
  const { simulation, session, opened, emit } = scene();
  emit('suspected');
  await simulation.run(2000);
  expect(opened.map(({ isOpen }) => isOpen)).toEqual([true]);
  // The channel migrates to another WebSocket.
  session.paths.active = { kind: 'websocket', name: 'other' };
  emit('path', { path: session.paths.active });
  expect(opened.map(({ isOpen }) => isOpen)).toEqual([false]);
  await simulation.run(5000);
  emit('suspected');
  await simulation.run(2000);
  expect(opened.map(({ isOpen }) => isOpen)).toEqual([false, true]);
});

test('a WebSocket that opens at a closed host is closed', async () => {
  const { host, opened, to } = scene();
  const closed = new Error('the host is closed');
  const shut = {
    ...host,
    sockets: {
      adopt: () => {
        throw closed;
      },
    },
  } as unknown as Host;
  const opening = openWebSocket(shut, station, to.ways, { timeout: 1000, signal: new AbortController().signal });
  await expect(opening).rejects.toThrow('closed');
  expect(opened.map(({ isOpen }) => isOpen)).toEqual([false]);
});

test('a channel over a WebSocket opens another one at once in another network, and the sessions over it note each', () => {
  const { session, opened, counts, emit } = scene();
  for (const name of ['first', 'second']) {
    session.paths.active = { kind: 'websocket', name };
    emit('path', { path: session.paths.active });
  }
  expect([opened.length, counts.notes]).toEqual([0, 2]);
  emit('network');
  expect(opened.length).toBe(1);
});

test('a WebSocket that was sent nothing, for want of a connection id, ends the channel, and says so without a word of the protocol', async () => {
  const { simulation, session, ends, emit } = scene();
  emit('suspected');
  await simulation.run(2000);
  emit('probed', { path: session.paths.all[0], answered: false });
  expect(ends).toEqual(['the way to the base station failed, and this connection cannot change to another: a new one is needed']);
});

test('each address of the base station’s name has its turn when UDP is tried again', async () => {
  const { simulation, session, names, asked, emit } = scene();
  names.push('192.0.2.1', '192.0.2.2', '2001:db8::1');
  session.paths.active = { kind: 'websocket', name: 'only' };
  emit('path', { path: session.paths.active });
  for (let network = 0; network < 3; network++) {
    emit('network');
    await simulation.run(5_000);
    for (const each of session.paths.all.splice(0)) emit('probed', { path: each, answered: false });
  }
  expect(asked).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1']);
});
