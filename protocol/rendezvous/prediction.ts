/**
 * Ports of a sequential NAT to try, at most 32 a round.
 *
 * **We have one port** (no NAT, or an independent one). The other end's packet to us makes a new mapping: the k-th since its report, where k counts what it
 * opens for other candidates and foreign flows too. We try the k in the order of their probability.
 *
 * **Both NATs are sequential.** Number n of a NAT is the port `Last + n · Stride`. The client sends its i-th packet to number i of the
 * device's NAT; it leaves from number i + dA of its own, where dA flows came in between. The device sends its j-th to number j + s(j), and
 * that leaves from number j + dB. Two packets meet where i = j + dB and i + dA = j + s(j): where s(j) = dA + dB, the sum of both shifts,
 * which neither end knows.
 *
 * So the device guesses: s runs through 0, 1, 2, … 14, and through them again. Three properties make that work:
 *
 *   - no number comes twice, which takes an odd period: a packet to a port that was sent to before would make no new mapping, and all later j would be wrong;
 *   - in a pass s(j) grows by one from packet to packet, while the true sum only grows, so that s(j) cannot step over it, whatever flows
 *     come while packets leave;
 *   - a packet lost on its way to the NAT that made s(j) step over it is made up for by the second pass.
 *
 * With 5 foreign flows a second at both ends, samples 50 to 400 ms old and a packet each 10 ms a round succeeds in 99.9 of 100
 * (test/protocol/rendezvous/prediction.test.ts): guessing 0 alone succeeds in 14 of 100, guessing 0 to 3 in four blocks of 8 ports in 40.
 * Where samples are older, one pass of 0 to 31 reaches further: of samples 1.0 to 1.5 s old 93 of 100.
 *
 * What the caller has to do, as each breaks the count: packets leave in the order of the list, from one socket, with few new mappings for
 * other candidates before them and none in between; both ends sample again just before a round; another round uses a further socket at both
 * ends, because a mapping that was made once is not made again.
 */
import type { NatMapping, NatReport } from '../control/index.ts';

/** Most ports of a round (PROTOCOL.md §6). */
export const MAX_PREDICTED = 32;

/** Where ports wrap: 65,536 is 1,024. */
const LOWEST = 1024;
const PORTS = 0x1_0000 - LOWEST;
/** Our constant: flows a second of others behind the NAT, at most; fewer are as likely. */
const FOREIGN = 5;
/** Our constant, ms: a report counts as no older. */
const MAX_AGE = 60_000;
/** Odd, so that two passes fit a round and have no number in common. */
const PERIOD = 15;
/** One pass, more than a round has. */
const LONG_PERIOD = 33;

export interface PredictionOptions {
  /** The NAT of this end. */
  readonly ours: NatReport;
  readonly role: 'client' | 'device';
  /** Expected time from when the other end wrote its report until its packets leave, ms; as much is assumed of this end. Default 150. */
  readonly ahead?: number;
  /** New mappings that the other end makes: one for each candidate that it opens, ours among them. Only for an end that has one port. Default 1. */
  readonly opened?: number;
  /** Default 32, at most 32. */
  readonly count?: number;
}

/**
 * The ports to send to, in this order, each once.
 *
 * @param theirs as it came from the peer; anything but a complete report of a sequential NAT predicts nothing
 * @returns none as well where our NAT is random or unknown: then no port of ours can meet theirs but by chance
 */
export function predictPorts(theirs: NatReport, options: PredictionOptions): number[] {
  const { mapping, last, stride, age = 0 } = theirs;
  if (mapping !== 'sequential' || last === undefined || stride === undefined || stride % 0x1_0000 === 0) return [];
  const step = stride > 0x7fff ? stride - 0x1_0000 : stride;
  const numbers = numbersOf(options, age);
  // A stride that divides the range leads back to the first port.
  return [...new Set(numbers.map((number) => portAt(last + number * step)))];
}

function numbersOf({ ours, role, ahead = 150, opened = 1, count = MAX_PREDICTED }: PredictionOptions, age: number): number[] {
  const most = Math.min(count, MAX_PREDICTED);
  const hasOnePort: readonly NatMapping[] = ['none', 'independent'];
  if (hasOnePort.includes(ours.mapping)) return likelyNumbers(age + ahead, opened, most);
  if (ours.mapping !== 'sequential') return [];
  const indexes = Array.from({ length: most }, (_, i) => i);
  if (role === 'client') return indexes.map((i) => i + 1);
  const period = periodFor(age + (ours.age ?? 0) + 2 * ahead);
  return indexes.map((j) => j + 1 + (j % period));
}

/** So many sums as flows of that time may bring, with little doubt. @param time of both ends together, ms */
function periodFor(time: number): number {
  const flows = (FOREIGN * time) / 1000;
  return flows + 3 * Math.sqrt(flows) < PERIOD ? PERIOD : LONG_PERIOD;
}

/**
 * The `count` likeliest numbers of one mapping after `time` ms, likeliest first: one of the `opened` new ones of the other end, behind a
 * Poisson number of foreign flows, whose rate is anything up to FOREIGN.
 */
function likelyNumbers(time: number, opened: number, count: number): number[] {
  const seconds = Math.min(Math.max(time, 0), MAX_AGE) / 1000;
  const positions = Math.min(Math.max(opened, 1), count);
  const most = Math.ceil(count + positions + FOREIGN * seconds + 6 * Math.sqrt(FOREIGN * seconds));
  const chance = new Float64Array(most + 1);
  for (let rate = 0; rate <= FOREIGN; rate++) {
    let poisson = Math.exp(-rate * seconds);
    for (let flows = 0; flows < most; flows++) {
      for (let own = 1; own <= positions && flows + own <= most; own++) chance[flows + own]! += poisson;
      poisson *= (rate * seconds) / (flows + 1);
    }
  }
  const numbers = Array.from({ length: most }, (_, i) => i + 1);
  return numbers.sort((a, b) => chance[b]! - chance[a]! || a - b).slice(0, count);
}

function portAt(port: number): number {
  return LOWEST + ((((port - LOWEST) % PORTS) + PORTS) % PORTS);
}
