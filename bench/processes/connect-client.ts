/**
 * Bench process: a client that connects to attached devices through their base station with default options, again and
 * again, with one key.
 */
import { load } from './checkout.ts';
import { serve } from './child.ts';

export interface Target {
  readonly productId: string;
  readonly deviceId: string;
  readonly deviceFingerprint: string;
  readonly sct: string;
  readonly station: { readonly port: number; readonly fingerprint: string };
}

export interface Connects {
  readonly targets: readonly Target[];
  readonly count: number;
  /** Connects per second. Default: one after the other. */
  readonly rate?: number;
  /** ms after each connection that is closed before the next connect. */
  readonly rest?: number;
  /** Each connection is closed once it is direct, and after this time, ms, at the latest. Default: at once. */
  readonly directWithin?: number;
}

export interface Connected {
  /** ms until the connect resolved. */
  readonly time: number;
  readonly isDirect: boolean;
}

const { SvcClient } = await load<typeof import('../../client/node.ts')>('client/node.js');
const client = SvcClient.create();
const key = client.createPrivateKey();

serve({
  async connects({ targets, count, rate, rest = 0, directWithin = 0 }: Connects) {
    const begun = performance.now();
    const connects: Promise<Connected>[] = [];
    for (let index = 0; index < count; index++) {
      const connect = connectOnce(targets[index % targets.length]!, directWithin);
      connects.push(connect);
      if (rate === undefined) await connect;
      await pause(rate === undefined ? rest : begun + ((index + 1) * 1000) / rate - performance.now());
    }
    return Promise.all(connects);
  },
});

async function connectOnce({ station, ...target }: Target, directWithin: number): Promise<Connected> {
  const connection = client.createConnection();
  connection.updateOptions({
    PrivateKey: key,
    ProductId: target.productId,
    DeviceId: target.deviceId,
    DeviceFingerprint: target.deviceFingerprint,
    ServerUrl: `https://127.0.0.1:${station.port}`,
    ServerFingerprint: station.fingerprint,
    ServerConnectToken: target.sct,
  });
  const start = performance.now();
  await connection.connect();
  const time = performance.now() - start;
  const isDirect = (): boolean => connection.getType() === 'DIRECT';
  for (const end = performance.now() + directWithin; !isDirect() && performance.now() < end; ) await pause(5);
  const result = { time, isDirect: isDirect() };
  await connection.close();
  return result;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
