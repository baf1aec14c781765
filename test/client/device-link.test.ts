/** When a lost connection is made again, and which answers of the base station end it; the connection is a stand-in. */
import { expect, test } from 'vitest';
import { DeviceLink } from '../../client/device-link.ts';
import { type Connection, Gateway, type GatewayOptions, RemoteError } from '../../client/node.ts';
import { nativeSimulation } from '../support/simulation.ts';

/** A connection that reports its end when `close` is called. */
function standIn(stationVerified: string | null = 'pinned') {
  let close = (): void => {};
  const connection = {
    isConnected: true,
    stationVerified,
    closeReason: null,
    close: async () => {},
    request: async () => {},
    on: (_: 'close', listener: () => void) => {
      close = listener;
    },
  } as unknown as Connection;
  return { connection, close: () => close() };
}

test.each<[string, string | null, Partial<GatewayOptions>, string]>([
  ['ends it', 'pinned', {}, 'ended'],
  ['does not end it when the next token may be another one', 'pinned', { renewsToken: true }, 'lost'],
  ['does not end it when the connection was made without the base station', null, {}, 'lost'],
])('a rejected token %s', async (_, stationVerified, options, state) => {
  const sim = nativeSimulation();
  const states: string[] = [];
  const { connection, close } = standIn(stationVerified);
  const connect = () => Promise.reject(new RemoteError('TOKEN_REJECTED', 'no'));
  const environment = sim.host('desk');
  const gateway = await Gateway.open({ environment, connection, connect, onState: (each) => states.push(each), ...options });
  close();
  await sim.run(10_000);
  expect(states.slice(0, 2)).toEqual(['connected', 'lost']);
  expect(states.at(-1)).toBe(state);
  await gateway.close();
});

test.each([
  ['starts again', 30_000, true],
  ['continues', 29_999, false],
])('after a long outage and a connection, the back-off of the next outage %s when the connection held %d ms', async (_, held, isAnew) => {
  const sim = nativeSimulation();
  const { connection, close } = standIn();
  const tries: number[] = [];
  const connect = async (): Promise<Connection> => {
    tries.push(sim.now);
    if (tries.length === 12) return connection;
    throw new RemoteError('TIMEOUT', 'no answer');
  };
  const events = { connected: () => {}, lost: () => {}, ended: () => {} };
  const link = new DeviceLink({ environment: sim.host('desk'), connect, events });
  link.start(null);
  await sim.run(() => link.connection !== null, 600_000);
  await sim.run(held);
  close();
  const lost = sim.now;
  await sim.run(() => tries.length === 13, 60_000);
  // The first wait is at most 250 ms, the 13th in a row at most 30 s.
  expect((tries[12] as number) - lost <= 250).toBe(isAnew);
  await link.close();
});
