/** What a connection reports and does while its session rests; session, host and base station are stand-ins. */
import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import { Connection, type ConnectionContext } from '../../client/connection.ts';
import type { ConnectionOptions } from '../../client/node.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { recordEvents } from '../support/recorded-events.ts';
import { nativeSimulation } from '../support/simulation.ts';
import { ADMITTED } from './stand-in.ts';

const TIMEOUT = new RemoteError('TIMEOUT', 'the device does not answer');

/** A connection over an address of the device, and its session. */
async function connected(options: ConnectionOptions = {}) {
  const sim = nativeSimulation();
  const environment = sim.host('phone');
  const channel = { isOpen: true, paths: { active: {} }, connection: { heardAt: 0 } };
  const facts = {
    restReason: null as RemoteError | null,
    paths: { all: [{ kind: 'udp' }] },
    connection: { heardAt: 0 },
    closed: new Promise(() => {}),
    end: vi.fn(),
  };
  const session = Object.assign(new EventEmitter(), facts);
  const host = {
    environment,
    dials: { start: () => ({ result: Promise.resolve(session), cancel: () => {} }) },
    routes: { channelOf: () => channel },
  };
  const context = {
    environment,
    importKey: () => environment.crypto.generateKey(),
    onConnecting: () => {},
    host: async () => host,
    connector: () => new Promise(() => {}),
    directPaths: () => ({ keepAlive: () => {}, keepAliveInterval: () => 1_000, channelOf: () => channel }),
  };
  const connection = new Connection(context as unknown as ConnectionContext);
  connection.updateOptions({ PrivateKey: 'any', ...options });
  connection.enableDirectCandidates();
  connection.addDirectCandidate('203.0.113.1', 5592);
  const events: string[] = [];
  recordEvents(connection, events);
  await sim.settle(connection.connect());
  return { session, channel, events };
}

test('a rest is reported once, however many routes fail in it, and so is its end', async () => {
  const { session, events } = await connected();
  for (const event of ['resting', 'resting', 'resumed', 'resting']) session.emit(event, TIMEOUT);
  expect(events).toEqual(['open', 'rest', 'resume', 'rest']);
});

test.each([
  ['ends when the base station was heard meanwhile', false, 1],
  ['continues when the base station is heard on another path than the device was asked over', true, 0],
])('with the keep-alive profile live a silent connection %s', async (_, migrates, ends) => {
  const { session, channel } = await connected({ ...ADMITTED, KeepAliveProfile: 'live' });
  session.emit('suspected');
  await new Promise(setImmediate);
  channel.connection.heardAt = 1_001;
  if (migrates) channel.paths.active = {};
  session.restReason = TIMEOUT;
  session.emit('resting', TIMEOUT);
  await new Promise(setImmediate);
  expect(session.end).toHaveBeenCalledTimes(ends);
});
