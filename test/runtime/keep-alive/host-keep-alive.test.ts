/** Keep-alive of a host's sessions, which have no core behind them: their numbers, PINGs and lost mappings. */
import { expect, test } from 'vitest';
import { RemoteError, type SvcError } from '../../../protocol/errors/index.ts';
import { HostKeepAlive } from '../../../runtime/keep-alive/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { WebSocketCut } from '../../../runtime/websocket/index.ts';
import { Stun } from '../../../server/station/stun.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const STATION = { address: '203.0.113.1', port: 4_433 };
const OUTSIDE = { address: '198.51.100.1', port: 5_000 };

/**
 * The keep-alive of a host that has learned how long its mappings live, with a channel and connections of `types`.
 */
async function learned(types: readonly string[] = ['RELAY', 'DIRECT']) {
  const simulation = nativeSimulation();
  const station = simulation.host('station', { addresses: [`${STATION.address}/24`] });
  const environment = simulation.host('client', { addresses: [`${OUTSIDE.address}/24`] });
  const stun = new Stun({ environment: station, mainPort: STATION.port, stunPort: null, stunAddress: null });
  await stun.opened;
  /** Times of the PINGs on the channel. */
  const pings: number[] = [];
  const listeners: Record<string, () => void> = {};
  const sessionOf = (type: string, own: object = {}): Session => {
    const path = { kind: 'udp', ...STATION };
    const to = { paths: { type, active: path, validated: path }, connection: { peer: { idleTimeout: 0 } } };
    return { isOpen: true, on: () => {}, setKeepAlive: () => {}, ping: () => {}, ...to, ...own } as unknown as Session;
  };
  const channel = sessionOf('DIRECT', {
    ...{ observedAddress: OUTSIDE, stunServers: stun.servers },
    on: (event: string, listener: () => void) => Object.assign(listeners, { [event]: listener }),
    ping: () => pings.push(simulation.now),
  });
  const keepAlive = new HostKeepAlive({
    environment,
    isNear: () => false,
    onChange: () => () => {},
    channelOf: ({ paths }) => (paths.type === 'RELAY' ? channel : null),
    ask: async () => ({ ...OUTSIDE, port: 6_000 }),
  });
  keepAlive.followChannel(channel);
  const connections = types.map((type) => sessionOf(type));
  for (const each of connections) keepAlive.follow(each, { profile: 'balanced' });
  await simulation.run(() => keepAlive.report(channel).state === 'learned', 100_000);
  return { simulation, keepAlive, channel, connections, pings, challenge: () => listeners.challenged?.() };
}

test('a relayed connection has the interval that was learned for the NAT, a direct one 25 s at most, a route kept warm 40 s', async () => {
  const { keepAlive, connections } = await learned();
  expect(connections.map((each) => keepAlive.intervalOf(each))).toEqual([55_000, 25_000]);
  expect(keepAlive.warmInterval).toBe(40_000);
});

test('the channel of a host without connections has the default profile: balanced, at most 55 s', async () => {
  const { keepAlive, channel } = await learned([]);
  expect(keepAlive.report(channel)).toMatchObject({ state: 'learned', interval: 55_000 });
});

test('a channel with another interval sends again 3 s later: a single exchange would not make its flow a lasting one', async () => {
  const { simulation, pings } = await learned();
  const since = simulation.now;
  await simulation.run(10_000);
  expect(pings).toEqual([since, since + 3_000]);
});

test('a channel that is seen at another port has lost its mapping: it is back at 25 s, and the NAT is measured again', async () => {
  const { simulation, keepAlive, channel, challenge } = await learned();
  challenge();
  await simulation.run(3_000);
  expect(keepAlive.report(channel)).toMatchObject({ state: 'learning', losses: 1, interval: 25_000 });
});

/** A host whose channel and relayed connection run over a WebSocket; `cut` ends the channel, and a new one follows. */
function overWebSocket() {
  const ended: ((error: SvcError | null) => void)[] = [];
  const changes: (() => void)[] = [];
  const channelOf = (): Session =>
    ({
      ...{
        isOpen: true,
        paths: { active: { kind: 'websocket' }, validated: { kind: 'websocket' } },
        connection: { peer: { idleTimeout: 0 } },
      },
      ...{ observedAddress: null, stunServers: [], setKeepAlive: () => {}, ping: () => {} },
      on: (event: string, listener: () => void) => (event === 'closed' ? ended.push(listener) : 0),
    }) as unknown as Session;
  let channel = channelOf();
  const keepAlive = new HostKeepAlive({
    environment: nativeSimulation().host('client'),
    isNear: () => false,
    onChange: (onChange) => {
      changes.push(onChange);
      return () => {};
    },
    channelOf: () => channel,
    ask: async () => null,
  });
  const connection = { ...channelOf(), paths: { type: 'RELAY', active: { kind: 'route' } }, on: () => {} } as unknown as Session;
  keepAlive.follow(connection, { profile: 'balanced', explicit: { interval: 20_000 } });
  const cut = (...errors: readonly (SvcError | null)[]): void => {
    for (const error of errors) {
      ended.at(-1)?.(error);
      channel = channelOf();
      keepAlive.followChannel(channel);
    }
  };
  const intervals = () => [keepAlive.report(channel).interval, keepAlive.intervalOf(connection)];
  return { keepAlive, cut, intervals, changes };
}

const silentFor = (silence: number): WebSocketCut => new WebSocketCut('ended with 1006', silence);

test('two cuts of a silent WebSocket shorten the interval of channel and connection, also one that was set, until the network changes', () => {
  const { cut, intervals, changes } = overWebSocket();
  cut(silentFor(10_000));
  expect(intervals()).toEqual([25_000, 20_000]);
  cut(silentFor(10_000));
  expect(intervals()).toEqual([7_500, 7_500]);
  expect(changes).toHaveLength(1);
  changes[0]!();
  expect(intervals()).toEqual([25_000, 20_000]);
  cut(silentFor(10_000));
  expect(intervals()).toEqual([25_000, 20_000]);
});

test('a channel over a WebSocket that ends for another reason does not', () => {
  const { cut, intervals } = overWebSocket();
  const error = new RemoteError('CLOSED', 'the base station is shutting down');
  cut(error, error, null, null, silentFor(0), silentFor(0), silentFor(10_000));
  expect(intervals()).toEqual([25_000, 20_000]);
});
