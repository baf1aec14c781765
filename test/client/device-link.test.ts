/** Which answers of the base station end a gateway whose connection is lost; the connection is a stand-in. */
import { expect, test } from 'vitest';
import { type Connection, Gateway, type GatewayOptions, RemoteError } from '../../client/node.ts';
import { nativeSimulation } from '../support/simulation.ts';

test.each<[string, string | null, Partial<GatewayOptions>, string]>([
  ['ends it', 'pinned', {}, 'ended'],
  ['does not end it when the next token may be another one', 'pinned', { renewsToken: true }, 'lost'],
  ['does not end it when the connection was made without the base station', null, {}, 'lost'],
])('a rejected token %s', async (_, stationVerified, options, state) => {
  const sim = nativeSimulation();
  const states: string[] = [];
  let close = (): void => {};
  const connection = {
    isConnected: true,
    stationVerified,
    closeReason: null,
    addConnectionEventsListener: ({ onEvent }: { onEvent: (event: string) => void }) => {
      close = () => onEvent('CLOSED');
    },
  } as unknown as Connection;
  const connect = () => Promise.reject(new RemoteError('TOKEN_REJECTED', 'no'));
  const environment = sim.host('desk');
  const gateway = await Gateway.open({ environment, connection, connect, onState: (each) => states.push(each), ...options });
  close();
  await sim.run(10_000);
  expect(states.slice(0, 2)).toEqual(['connected', 'lost']);
  expect(states.at(-1)).toBe(state);
  await gateway.close();
});
