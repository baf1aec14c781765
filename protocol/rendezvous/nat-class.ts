/**
 * The class of a NAT, from samples of how the station and its STUN ports saw our sockets (RFC 4787 §4.1, RFC 5780
 * §4.3).
 *
 *   1. every sample shows one of our addresses with the local port                  → none
 *   2. one socket shows one address and port to at least two destinations           → independent
 *   3. one socket shows different ones: the newest mappings of all sockets in order
 *      are small multiples of one stride apart                                      → sequential, else random
 *   4. no socket has queried two destinations                                         → unknown
 *
 * Foreign flows take ports in between, therefore multiples up to {@link MAX_MULTIPLE} count. A mapping on the local
 * port reveals no stride: such a NAT keeps ports, and assigns others only where one is taken.
 *
 * Not here: which samples are taken and when (docstring of `classifyNat`), and what follows from the class
 * (prediction.ts, spray.ts). A NAT whose mapping depends only on the destination's address looks independent until a
 * second address is queried.
 */
import type { NatReport, SocketAddress } from '../control/index.ts';

/** One destination's view of one socket. */
export interface NatSample {
  /** Local port of the socket. */
  readonly local: number;
  /** Destination: numeric address and port. */
  readonly to: string;
  readonly toPort: number;
  /** Source address of the packet as the destination saw it, in canonical text. */
  readonly mapped: SocketAddress;
  /**
   * When the first request answered by this sample left, ms: that packet created the mapping. Requests of one
   * millisecond count in the order of the list. A mapping that was created before and only seen again has the time of
   * its first sample, or any time long ago.
   */
  readonly at: number;
}

/** Our constant: the most ports a NAT may have assigned from one of our mappings to the next, which is included. */
const MAX_MULTIPLE = 8;
/**
 * Our constant: two distances, the minimum to reveal a stride. Three random ports look sequential once in 7,000 times.
 */
const MIN_MAPPINGS = 3;
/**
 * Our constant, ms: over a longer gap, 5 foreign flows a second take more than MAX_MULTIPLE ports too often, and the
 * distance means nothing.
 */
const MAX_GAP = 1_000;
/** Ranges after which ports wrap: most NATs assign 1,024 to 65,535; some any. */
const WRAPS = [0xffff - 1023, 0x1_0000] as const;

/**
 * Classifies the NAT in front of our sockets.
 *
 * Samples needed: the main socket queries two destinations (the station's main port is the first, its STUN port the
 * second, a second IP the third where there is one). If they saw the same, that is all. If they differ, three further
 * sockets query one destination once each, all at once: with the second sample of the main socket these are four new
 * mappings, so one of them may get lost. Longer pauses let foreign flows in.
 *
 * IPv4 decides where there is a sample of it, as IPv6 is hardly ever translated. Do not pass samples from before a
 * change of network.
 *
 * @param ownAddresses numeric addresses of our interfaces in canonical text, without prefix lengths
 * @param now ms, on the clock of the samples
 */
export function classifyNat(samples: readonly NatSample[], ownAddresses: readonly string[], now: number): NatReport {
  const own = new Set(ownAddresses);
  const family = ofOneFamily(samples);
  const translated = family.filter(({ local, mapped }) => mapped.port !== local || !own.has(mapped.address));
  if (translated.length === 0) return { mapping: family.length > 0 ? 'none' : 'unknown' };
  const sockets = [...seenBySocket(translated).values()].filter((seen) => seen.size > 1);
  if (sockets.length === 0) return { mapping: 'unknown' };
  if (sockets.every((seen) => new Set([...seen.values()].map(({ mapped }) => keyOf(mapped))).size === 1)) return { mapping: 'independent' };
  return sequence(newMappings(translated), now) ?? { mapping: 'random' };
}

function ofOneFamily(samples: readonly NatSample[]): readonly NatSample[] {
  const v4 = samples.filter(({ mapped }) => !mapped.address.includes(':'));
  return v4.length > 0 ? v4 : samples;
}

/** Returns, by local port, the newest sample of each destination. */
function seenBySocket(samples: readonly NatSample[]): Map<number, Map<string, NatSample>> {
  const sockets = new Map<number, Map<string, NatSample>>();
  for (const sample of samples) {
    const seen = sockets.get(sample.local) ?? new Map<string, NatSample>();
    sockets.set(sample.local, seen);
    const destination = `${sample.to} ${sample.toPort}`;
    const before = seen.get(destination);
    if (before === undefined || before.at <= sample.at) seen.set(destination, sample);
  }
  return sockets;
}

/** Returns the samples that show a mapping for the first time, in the order in which the NAT created them. */
function newMappings(samples: readonly NatSample[]): NatSample[] {
  const first = new Map<string, NatSample>();
  for (const sample of samples.toSorted((a, b) => a.at - b.at)) {
    const key = `${sample.local} ${keyOf(sample.mapped)}`;
    if (!first.has(key)) first.set(key, sample);
  }
  return [...first.values()].filter(({ local, mapped }) => mapped.port !== local);
}

/**
 * Returns the report of a sequential NAT, from as many of the newest mappings as fit one stride; null when they are too
 * few.
 */
function sequence(mappings: readonly NatSample[], now: number): NatReport | null {
  const run = newestRun(mappings);
  const ports = run.map(({ mapped }) => mapped.port);
  for (let from = 0; from + MIN_MAPPINGS <= ports.length; from++) {
    const stride = strideOf(ports.slice(from));
    if (stride === 0) continue;
    const newest = run.at(-1)!;
    return {
      mapping: 'sequential',
      last: newest.mapped.port,
      stride: (stride + 0x1_0000) % 0x1_0000,
      age: Math.max(0, Math.round(now - newest.at)),
    };
  }
  return null;
}

/** Returns the newest mappings, as far back as they follow one another closely and have one address. */
function newestRun(mappings: readonly NatSample[]): readonly NatSample[] {
  let from = mappings.length - 1;
  while (from > 0 && follows(mappings[from - 1]!, mappings[from]!)) from--;
  return mappings.slice(Math.max(from, 0));
}

function follows(before: NatSample, after: NatSample): boolean {
  return after.at - before.at <= MAX_GAP && after.mapped.address === before.mapped.address;
}

/**
 * Returns the largest stride, with its sign, of which all distances are small multiples; 0 when there is none. One
 * above 4,032 is found only if its multiples do not wrap around the range.
 */
function strideOf(ports: readonly number[]): number {
  for (const wrap of WRAPS) {
    const distances = ports.slice(1).map((port, i) => signed(port - ports[i]!, wrap));
    const up = distances.every((distance) => distance > 0);
    if (!up && !distances.every((distance) => distance < 0)) continue;
    const sizes = distances.map(Math.abs);
    const stride = sizes.reduce(commonDivisor);
    if (Math.max(...sizes) <= MAX_MULTIPLE * stride) return up ? stride : -stride;
  }
  return 0;
}

/** Returns the distance in the range from -wrap / 2 to wrap / 2. */
function signed(distance: number, wrap: number): number {
  const up = ((distance % wrap) + wrap) % wrap;
  return up > wrap / 2 ? up - wrap : up;
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}

function keyOf({ address, port }: SocketAddress): string {
  return `${address} ${port}`;
}
