/** Reports on the pairs of a round, for display. */
import type { Pair, PairKind, PairState } from './pair.ts';

export interface PairReport {
  readonly address: string;
  readonly port: number;
  readonly kind: PairKind;
  readonly state: PairState;
  /** Checks sent; openers are not included. */
  readonly checks: number;
  /** A check of the peer came from there. */
  readonly heard: boolean;
  /** The limits on packets to addresses that have not answered were reached. */
  readonly limited: boolean;
  /** ms, null before the first answer. */
  readonly rtt: number | null;
  /** One short sentence on the outcome. */
  readonly reason: string;
}

export function reportOf({ remote, kind, state, checks, heard, limited, rtt }: Pair): PairReport {
  const { address, port } = remote;
  return { address, port, kind, state, checks, heard, limited, rtt, reason: reasonOf(state, heard, limited, checks) };
}

function countOf(checks: number): string {
  return checks === 1 ? '1 check' : `${checks} checks`;
}

function reasonOf(state: PairState, heard: boolean, limited: boolean, checks: number): string {
  if (state === 'answered') return 'it answers';
  if (heard && checks === 0) return 'the other end reaches us, not checked yet';
  if (heard) return 'the other end reaches us, our checks get no answer';
  if (limited && checks === 0) return 'not checked: no more may go to an address that has not answered';
  if (limited) return `no answer to ${countOf(checks)}, and no more may go to an address that has not answered`;
  if (state === 'failed') return `no answer to ${countOf(checks)}`;
  return state === 'checking' ? `no answer to ${countOf(checks)} so far` : 'not checked yet';
}
