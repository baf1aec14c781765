/**
 * The effect of strangers on WebSockets on other peers of a base station with its default limits: 10,000 idle
 * strangers, 1,000 that never finish the upgrade, and a client with a token that begins a download over a WebSocket and
 * never reads. Each row is a rate beside them; its peer is the rate without them, in turn.
 *
 *   beside-relay      upload of a client to its device, both over UDP
 *   beside-websocket  the same with the client on a WebSocket
 *   beside-rest       requests to /health
 */
import { get } from 'node:http';
import { type Child, withChildren, withDirectory } from './processes/parent.ts';
import { attach } from './processes/stage.ts';
import { type Goal, type Row, spread } from './report.ts';

const IDLE = 10_000;
const UNFINISHED = 1_000;
/** The fewest that the limit for one address allows. */
const ADDRESSES = 40;
const ROUNDS = 3;
/** ms of each measurement. */
const TIME = 1_000;
/** ms for which strangers may stay. The default of ten seconds is too short for a busy machine to open them all. */
const STAY = 600_000;
/** ms until the base station has noticed that they are gone. */
const REST = 1_000;
const ALONE = 'alone';

export const strangersGoals: readonly Goal[] = ['relay', 'websocket', 'rest'].map((what) => ({
  case: `beside-${what}`,
  peer: ALONE,
  atLeast: 0.8,
}));

type What = 'relay' | 'websocket' | 'rest';
type Rates = Record<What, number[]>;

const ids = { productId: 'pr-bench', deviceId: 'de-bench' };

export function strangersRows(progress: (step: string) => void): Promise<readonly Row[]> {
  return withChildren((start) =>
    withDirectory(async (data) => {
      const device = start('device');
      const { station, ...known } = await attach(start('station'), device, data, { settings: { webSocketTimeout: STAY } });
      const connect = async (name: What): Promise<Child> => {
        const client = start('client');
        await client.call('connect', {
          name,
          options: { ...ids, ...known, localPort: undefined, station, overWebSocket: name !== 'relay' },
        });
        return client;
      };
      const ends = { relay: await connect('relay'), websocket: await connect('websocket'), port: station.port };
      const [alone, beside]: [Rates, Rates] = [none(), none()];
      await measure(ends, none());
      for (let round = 1; round <= ROUNDS; round++) {
        progress(`beside ${IDLE} strangers, round ${round} of ${ROUNDS}`);
        await measure(ends, alone);
        const silent = await connect('websocket');
        await silent.call('beginDownload', { name: 'websocket' });
        silent.pause();
        await withStrangers(start('ws-strangers'), station.port, () => measure(ends, beside));
        await silent.stop();
        await new Promise((resolve) => setTimeout(resolve, REST));
      }
      return (['relay', 'websocket', 'rest'] as const).map((what) => ({
        ...{ case: `beside-${what}`, unit: what === 'rest' ? '1/s' : 'MB/s', better: 'higher' as const },
        ...{ ours: spread(beside[what]), peers: { [ALONE]: spread(alone[what]) } },
      }));
    }),
  );
}

const none = (): Rates => ({ relay: [], websocket: [], rest: [] });

async function withStrangers(strangers: Child, port: number, work: () => Promise<void>): Promise<void> {
  await strangers.call('idle', { port, count: IDLE, addresses: ADDRESSES });
  await strangers.call('half', { port, count: UNFINISHED, addresses: ADDRESSES });
  await work();
  const left = await strangers.call<number>('count');
  // Unfinished upgrades end after ten seconds. The client and the silent client also have a WebSocket.
  if (left < IDLE - 10) throw new Error(`only ${left} strangers stayed all the time`);
  await strangers.stop();
}

interface Ends {
  readonly relay: Child;
  readonly websocket: Child;
  readonly port: number;
}

async function measure({ relay, websocket, port }: Ends, into: Rates): Promise<void> {
  into.relay.push(await uploadRate(relay, 'relay'));
  into.websocket.push(await uploadRate(websocket, 'websocket'));
  into.rest.push(await requestRate(port));
}

async function uploadRate(client: Child, name: What): Promise<number> {
  await client.call('beginUpload', { name });
  await new Promise((resolve) => setTimeout(resolve, TIME));
  return client.call('endUpload', { name });
}

/** Returns requests per second, one after the other, each over a new connection. */
async function requestRate(port: number): Promise<number> {
  const began = performance.now();
  let answered = 0;
  for (; performance.now() - began < TIME; answered++) await health(port);
  return (answered * 1e3) / (performance.now() - began);
}

function health(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/health', agent: false }, (response) => {
      response.resume().on('end', resolve);
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
    }).on('error', reject);
  });
}
