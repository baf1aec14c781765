/**
 * The cost of an issuer's token at a base station: processor time of a connect and its end, with the issuer's keys
 * cached, beside a connect with a server key that admits alone.
 *
 *   check        the check of the signature
 *   token-fresh  the rest of a connect with a new token
 *   token-again  a connect with a token that was accepted before
 *
 * They take turns in short rounds, at one base station with one client and one device as separate processes. Then the
 * cost of the proof by TLS (`trust-tls.ts`).
 */
import { type Child, withChildren, withDirectory } from './processes/parent.ts';
import { type Report, type Row, spread } from './report.ts';
import { measureTls } from './trust-tls.ts';

const ROUNDS = 11;
const WARM_UP = 2;
/** Connects of one kind in a round. */
const CONNECTS = 100;
const ids = { productId: 'pr-bench', deviceId: 'de-bench' };

export function run(progress: (step: string) => void): Promise<Report> {
  return withDirectory((data) =>
    withChildren((start) => measure(start('trust-station'), start('device'), start('trust-client'), data, progress)),
  );
}

interface Address {
  readonly port: number;
  readonly fingerprint: string;
  readonly httpsPort: number;
  /** PEM of its certificate. */
  readonly rootCerts: string;
}

interface Measured {
  readonly key: number[];
  readonly fresh: number[];
  readonly again: number[];
  readonly check: number[];
}

async function measure(station: Child, device: Child, client: Child, data: string, progress: (step: string) => void): Promise<Report> {
  const { fingerprint: deviceFingerprint } = await device.call<{ fingerprint: string }>('identity');
  const address = await station.call<Address>('start', { data, ...ids, deviceFingerprint });
  await device.call('start', { ...ids, station: address });
  const named = { ProductId: ids.productId, DeviceId: ids.deviceId, DeviceFingerprint: deviceFingerprint };
  const all = { ...named, ServerUrl: `https://127.0.0.1:${address.port}`, ServerFingerprint: address.fingerprint };
  const tokens = await station.call<string[]>('tokens', {
    count: (WARM_UP + ROUNDS) * CONNECTS + 1,
    devices: `${ids.productId}.${ids.deviceId}`,
  });
  const again = tokens.pop()!;
  const cost = async (each: object[]): Promise<number> => {
    const before = await station.call<number>('used');
    await client.call('connect', { all, each });
    return ((await station.call<number>('used')) - before) / each.length;
  };
  const measured: Measured = { key: [], fresh: [], again: [], check: [] };
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    progress(`round ${round + 1} of ${WARM_UP + ROUNDS}`);
    const fresh = tokens.splice(0, CONNECTS);
    const key = await cost(Array(CONNECTS).fill({ ServerKey: 'sk-key' }));
    const withToken = await cost(fresh.map((token) => ({ ServerKey: 'sk-jwt', ServerJwtToken: token })));
    const withKnown = await cost(Array(CONNECTS).fill({ ServerKey: 'sk-jwt', ServerJwtToken: again }));
    const check = await station.call<number>('verify', fresh);
    if (round < WARM_UP) continue;
    measured.key.push(key);
    measured.check.push(check);
    measured.fresh.push(withToken - check);
    measured.again.push(withKnown);
  }
  const target = { all: { ...named, ServerKey: 'sk-key' }, rootCerts: address.rootCerts, port: address.httpsPort, pinned: address };
  return report(measured, await measureTls(client, target, progress));
}

function report({ key, fresh, again, check }: Measured, tls: Awaited<ReturnType<typeof measureTls>>): Report {
  const row = (name: string, times: readonly number[], peers: Row['peers'] = {}): Row => ({
    case: name,
    unit: 'µs',
    better: 'lower',
    ours: spread(times),
    peers,
  });
  return {
    bench: 'trust',
    about:
      'processor time of a base station for one connect and its end, by credential of the client; time of a connect, by proof of the base station.',
    rows: [
      row('token-fresh', fresh, { key: spread(key) }),
      row('token-again', again, { key: spread(key) }),
      row('check', check),
      ...tls.rows,
    ],
    goals: [{ case: 'token-fresh', peer: 'key', atMost: 1.3 }, { case: 'token-again', peer: 'key', atMost: 1.05 }, ...tls.goals],
  };
}
