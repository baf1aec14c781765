/** Keep-alive of a host's sessions, which have no core behind them: their numbers, PINGs and lost mappings. */
import { expect, test } from 'vitest';
import type { SocketAddress } from '../../../protocol/address.ts';
import { Stun } from '../../../server/station/stun.ts';
import { HostKeepAlive } from '../../../transport/keep-alive/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

const STATION = { address: '203.0.113.1', port: 4_433 };
/** The address outside. */
const OUTSIDE = { address: '198.51.100.1', port: 5_000 };

/** A host whose learner has learned that a mapping lives long, with a channel, and what `ping` sent on it. */
async function learned() {
  const simulation = nativeSimulation();
  const station = simulation.host('station', { addresses: [`${STATION.address}/24`] });
  const environment = simulation.host('client', { addresses: [`${OUTSIDE.address}/24`] });
  const stun = new Stun({ environment: station, mainPort: STATION.port, stunPort: null, stunAddress: null });
  await stun.opened;
  const pings: number[] = [];
  let challenged = (): void => {};
  let seen: SocketAddress = OUTSIDE;
  const path = { kind: 'udp', ...STATION };
  const sessionOf = (type: 'DIRECT' | 'RELAY', more: object = {}): Session => {
    const on = (event: string, listener: () => void): void => {
      if (event === 'challenged') challenged = listener;
    };
    const session = {
      type,
      path,
      validatedPath: path,
      isOpen: true,
      connection: { idleTimeout: 0 },
      on,
      setKeepAlive: () => {},
      ping: () => {},
    };
    return { ...session, ...more } as unknown as Session;
  };
  const ping = (): void => void pings.push(simulation.now);
  const channel = sessionOf('DIRECT', { ping, observedAddress: OUTSIDE, stunServers: stun.servers });
  const keepAlive = new HostKeepAlive({
    environment,
    isNear: () => false,
    watch: () => () => {},
    channelOf: ({ type }) => (type === 'RELAY' ? channel : null),
    ask: async () => seen,
  });
  keepAlive.followChannel(channel);
  const [relayed, direct] = (['RELAY', 'DIRECT'] as const).map((type) => {
    const session = sessionOf(type);
    keepAlive.follow(session, { profile: 'balanced' });
    return session;
  });
  await simulation.run(() => keepAlive.report(channel).state === 'learned', 100_000);
  return {
    ...{ simulation, keepAlive, channel, relayed: relayed!, direct: direct!, pings },
    moveTo: (address: SocketAddress): void => {
      seen = address;
      challenged();
    },
  };
}

test('a relayed connection has the interval that was learned for the NAT, a direct one 25 s at most', async () => {
  const { keepAlive, relayed, direct } = await learned();
  expect([relayed, direct].map((session) => keepAlive.intervalOf(session))).toEqual([55_000, 25_000]);
  keepAlive.close();
});

test('a channel with another interval sends again 3 s later: a single exchange would not make its flow a lasting one', async () => {
  const { simulation, keepAlive, pings } = await learned();
  const since = simulation.now;
  await simulation.run(10_000);
  expect(pings).toEqual([since, since + 3_000]);
  keepAlive.close();
});

test('a channel whose mapping was lost is back at 25 s, and the NAT is measured again', async () => {
  const { simulation, keepAlive, channel, moveTo } = await learned();
  moveTo({ ...OUTSIDE, port: 6_000 });
  await simulation.run(3_000);
  expect(keepAlive.report(channel)).toMatchObject({ state: 'learning', losses: 1, interval: 25_000 });
  keepAlive.close();
});
