/**
 * Ports of a sequential NAT to try, at most 32 a round.
 *
 * **We have one port** (no NAT, or an independent one). The peer's packet to us creates a new mapping: the k-th since
 * its report, where k also counts what it opens for other candidates, and foreign flows. We try the k in the order of
 * their probability.
 *
 * **Both NATs are sequential.** Number n of a NAT is the port `Last + n · Stride`. The client sends its i-th packet to
 * number i of the device's NAT; it leaves from number i + dA of its own, where dA flows came in between. The device
 * sends its j-th to number j + s(j), and that leaves from number j + dB. Two packets meet where i = j + dB and i + dA =
 * j + s(j): where s(j) = dA + dB, the sum of both shifts, which neither end knows.
 *
 * So the device guesses: s runs through 0, 1, 2, … 14, and through them again. Three properties make that work:
 *
 * - no number repeats, which takes an odd period: a packet to a port that was used before would create no new mapping,
 *   and all later j would be wrong;
 * - in a pass s(j) grows by one from packet to packet, while the true sum only grows, so that s(j) cannot skip it,
 *   whatever flows come while packets leave;
 * - if a packet lost on its way to the NAT made s(j) skip the sum, the second pass compensates.
 *
 * With 5 foreign flows a second at both ends, samples 50 to 400 ms old and a packet each 10 ms, a round succeeds in
 * 99.9 of 100 cases (test/protocol/rendezvous/prediction.test.ts): guessing only 0 succeeds in 14 of 100, guessing 0 to
 * 3 in four blocks of 8 ports in 40. Where samples are older, one pass of 0 to 31 reaches further: with samples 1.0 to
 * 1.5 s old it succeeds in 93 of 100.
 *
 * Requirements on the caller, as each violation breaks the count: packets leave in the order of the list, from one
 * socket, with few new mappings for other candidates before them and none in between; both ends sample again just
 * before a round; another round uses a further socket at both ends, because an existing mapping is not created again.
 */
import type { NatMapping, NatReport } from '../control/index.ts';

/** Most ports of a round (PROTOCOL.md §6). */
export const MAX_PREDICTED = 32;

/** Range in which ports wrap: 65,536 is 1,024. */
const LOWEST = 1024;
const PORTS = 0x1_0000 - LOWEST;
/** Our constant: most foreign flows a second behind the NAT; fewer are as likely. */
const FOREIGN = 5;
/** Our constant, ms: the largest age that a report counts with. */
const MAX_AGE = 60_000;
/** Odd, so that two passes fit a round and have no number in common. */
const PERIOD = 15;
/** One pass, longer than a round. */
const LONG_PERIOD = 33;

export interface PredictionOptions {
  /** The NAT of this end. */
  readonly ours: NatReport;
  readonly role: 'client' | 'device';
  /** Expected time from the peer's report until its packets leave, ms; the same is assumed of this end. Default 150. */
  readonly ahead?: number;
  /**
   * New mappings that the peer creates: one for each candidate that it opens, ours among them. Only for an end that has
   * one port. Default 1.
   */
  readonly opened?: number;
  /** Default 32, at most 32. */
  readonly count?: number;
}

/**
 * Returns the ports to send to, in this order, each once.
 *
 * @param theirs as received from the peer; anything but a complete report of a sequential NAT predicts nothing
 * @returns none also where our NAT is random or unknown: then our ports can meet the peer's only by chance
 */
export function predictPorts(theirs: NatReport, options: PredictionOptions): number[] {
  const { mapping, last, stride, age = 0 } = theirs;
  if (mapping !== 'sequential' || last === undefined || stride === undefined || stride % 0x1_0000 === 0) return [];
  const step = stride > 0x7fff ? stride - 0x1_0000 : stride;
  const numbers = numbersOf(options, age);
  // A stride that divides the range returns to the first port.
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

/**
 * Returns the number of sums to try: as many as the flows of that time may cause, with high probability.
 * @param time of both ends together, ms
 */
function periodFor(time: number): number {
  const flows = (FOREIGN * time) / 1000;
  return flows + 3 * Math.sqrt(flows) < PERIOD ? PERIOD : LONG_PERIOD;
}

/**
 * Returns the `count` likeliest numbers of one mapping after `time` ms, likeliest first: one of the peer's `opened` new
 * ones, after a Poisson number of foreign flows, whose rate is anything up to FOREIGN.
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
