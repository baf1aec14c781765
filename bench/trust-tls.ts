/**
 * The cost of the proof of a base station by TLS at a client.
 *
 *   tls-first  a first connect, each by a new client; its peer `pin-and-get` is a first connect with a pin and a bare
 *              GET of the same document
 *   tls-later  a later connect of one client; its peer `pin` is the same with a pin
 */
import type { Child } from './processes/parent.ts';
import { type Goal, type Row, spread } from './report.ts';

const ROUNDS = 11;
const WARM_UP = 2;
/** First and later connects of one kind in a round. */
const FIRST = 10;
const LATER = 50;

export interface TlsTarget {
  /** Connection options without the proof of the base station. */
  readonly all: Readonly<Record<string, string>>;
  /** PEM. */
  readonly rootCerts: string;
  /** Port of https. */
  readonly port: number;
  /** Full hex fingerprint, and UDP port. */
  readonly pinned: { readonly fingerprint: string; readonly port: number };
}

interface Measured {
  readonly first: number[];
  readonly firstPinned: number[];
  readonly later: number[];
  readonly laterPinned: number[];
}

/** Measures, and returns the rows and goals. */
export async function measureTls(
  client: Child,
  target: TlsTarget,
  progress: (step: string) => void,
): Promise<{ rows: Row[]; goals: Goal[] }> {
  const url = (port: number): string => `https://127.0.0.1:${port}`;
  const tls = { ...target.all, ServerUrl: url(target.port), RootCerts: target.rootCerts };
  const pinned = { ...target.all, ServerUrl: url(target.pinned.port), ServerFingerprint: target.pinned.fingerprint };
  const measured: Measured = { first: [], firstPinned: [], later: [], laterPinned: [] };
  const get = { url: `${url(target.port)}/.well-known/svc`, ca: target.rootCerts, count: FIRST };
  for (let round = 0; round < WARM_UP + ROUNDS; round++) {
    progress(`TLS, round ${round + 1} of ${WARM_UP + ROUNDS}`);
    const first = await client.call<number>('first', { options: tls, count: FIRST });
    const firstPinned = await client.call<number>('first', { options: pinned, count: FIRST });
    const fetched = await client.call<number>('get', get);
    const later = await client.call<number>('later', { options: tls, count: LATER });
    const laterPinned = await client.call<number>('later', { options: pinned, count: LATER });
    if (round < WARM_UP) continue;
    measured.first.push(first);
    measured.firstPinned.push(firstPinned + fetched);
    measured.later.push(later);
    measured.laterPinned.push(laterPinned);
  }
  return report(measured);
}

function report({ first, firstPinned, later, laterPinned }: Measured): { rows: Row[]; goals: Goal[] } {
  const row = (name: string, ours: readonly number[], peer: string, peers: readonly number[]): Row => ({
    case: name,
    unit: 'ms',
    better: 'lower',
    ours: spread(ours),
    peers: { [peer]: spread(peers) },
  });
  return {
    rows: [row('tls-first', first, 'pin-and-get', firstPinned), row('tls-later', later, 'pin', laterPinned)],
    goals: [
      { case: 'tls-first', peer: 'pin-and-get', atMost: 1.1 },
      { case: 'tls-later', peer: 'pin', atMost: 1.05 },
    ],
  };
}
