/**
 * The scanner of one link, sans-IO (RFC 6762, RFC 6763): queries for devices, keeps their answers, reports changes.
 *
 * - Browsing: browses.ts.
 * - Resolving (RFC 6763 §12): SRV, TXT and addresses that an answer does not include are asked for, at most 4 times.
 * - One instance asked for by name: its SRV and TXT records and the addresses of its host, immediately, since no other
 *   host waits for the same moment and responders answer for unique names without delay (§6); repeated as in browsing.
 *   Questions for shared records have separate messages, as they would delay the answer.
 * - Refresh at 80, 85, 90 and 95 % of a record's life (§5.2), goodbye (§10.1), cache flush (§10.2).
 * - Answers count only from port 5353 (§6). The IO layer checks that they come from the link (§11).
 *
 * After `browse`, `find`, their opposites and `receive`: `nextEvent` until null, then `nextTimeout`, which may be
 * immediate. After `handleTimeout`: `transmit` and `nextEvent` until null, then `nextTimeout`.
 */
import { parseAddress } from '../address.ts';
import { Browses } from './browses.ts';
import { isHostName, isInstanceName } from './names.ts';
import { QuestionPacker } from './questions.ts';
import { RecordSet } from './record-set.ts';
import type { DnsMessage, DnsRecord } from './records.ts';
import { MDNS_PORT, type MdnsSource, type OutgoingDnsMessage } from './responder.ts';
import { type Host, type Instance, ScanCache, Schedule } from './scan-cache.ts';
import { type ScannedService, serviceOf, signatureOf } from './scanned-service.ts';

const SECOND = 1000;
/** Number of queries for missing records. */
export const TRIES = 4;
/** ms between two passes over the cache. */
export const STEP = 100;
export const MAX_MESSAGES = 4;
/** Maximum bytes of TXT, with a length byte per item (RFC 6763 §6.2). A longer record is ignored. */
export const MAX_TXT_BYTES = 1300;

/** An instance appeared, changed, or disappeared (`service` null). */
export interface ServiceEvent {
  readonly kind: 'service';
  /** The instance, in the case in which it was first heard. */
  readonly name: string;
  readonly service: ScannedService | null;
}

/** The scanner of one link. */
export class Scanner {
  readonly #random: () => number;
  readonly #cache: ScanCache;
  readonly #browses: Browses;
  /** Instances that may have changed. */
  readonly #touched = new Set<Instance>();
  /** Instances that no caller seeks any longer. Each is freed a second after its last question. */
  readonly #leaving = new Set<Instance>();
  readonly #events: ServiceEvent[] = [];
  readonly #outgoing: DnsMessage[] = [];
  /** Time before which nothing is due; the next step may be due later. */
  #wake = Number.POSITIVE_INFINITY;
  /**
   * Earliest time of the next pass over the cache, so that a thousand devices are queried in a few messages and
   * processed together.
   */
  #nextStep = Number.NEGATIVE_INFINITY;

  /**
   * @param random 0 to below 1 at each call
   * @param limit most instances besides those asked for by name
   */
  constructor(random: () => number, limit: number) {
    this.#random = random;
    this.#cache = new ScanCache(
      limit,
      (instance) => this.#forgotten(instance),
      (now) => new Schedule(this.#soon(now), TRIES),
    );
    this.#browses = new Browses(this.#cache);
  }

  /** Starts asking for the instances that a name, of the service type or a subtype, lists. Browse a name once. */
  browse(name: string, now: number): void {
    const schedule = new Schedule(this.#soon(now));
    this.#browses.add(name, schedule);
    this.#wake = Math.min(this.#wake, schedule.next);
  }

  endBrowse(name: string): void {
    const key = name.toLowerCase();
    this.#browses.byKey.delete(key);
    for (const instance of [...this.#cache.instances]) {
      if (!instance.listed.delete(key)) continue;
      this.#touched.add(instance);
      this.#cache.forgetUnlisted(instance);
    }
  }

  /**
   * Asks for one instance by its name, immediately and from the beginning of the schedule. If the last question is less
   * than a second old, the next one waits (RFC 6762 §5.2): the answers are known, or still on their way.
   */
  find(instance: string, now: number): void {
    const known = this.#cache.get(instance);
    const first = known === undefined ? now : Math.max(now, known.askedAt + SECOND);
    if (known !== undefined) this.#leaving.delete(known);
    this.#touched.add(this.#cache.want(instance, new Schedule(first), now));
    this.#wake = Math.min(this.#wake, first);
  }

  /** Ends the questions for an instance. It stays for a second after the last question, for the next `find`. */
  endFind(name: string, now: number): void {
    const instance = this.#cache.get(name);
    if (instance === undefined) return;
    instance.wanted = new Schedule(Number.POSITIVE_INFINITY);
    this.#leaving.add(instance);
    this.#wake = Math.min(this.#wake, instance.askedAt + SECOND);
    this.#leave(now);
  }

  /** Handles a message that arrived on the link. @param own it comes from an address of this host */
  receive(message: DnsMessage, from: MdnsSource, now: number, own = false): void {
    if (from.port !== MDNS_PORT) return;
    if (message.response) this.#heard([...message.answers, ...message.additionals], own, now);
    else if (!own && !message.truncated) this.#browses.overheard(message, now);
  }

  /** Returns the next message to send, null when none waits. */
  transmit(): OutgoingDnsMessage | null {
    const message = this.#outgoing.shift();
    return message === undefined ? null : { message, to: null };
  }

  /** Returns the next change of an instance, null when there is none. */
  nextEvent(): ServiceEvent | null {
    for (const instance of this.#touched) this.#report(instance);
    this.#touched.clear();
    return this.#events.shift() ?? null;
  }

  /** Returns when to call `handleTimeout`, ms; Infinity: not before something arrives. */
  nextTimeout(): number {
    return this.#wake;
  }

  /** Removes expired records and creates the questions that are due. */
  handleTimeout(now: number): void {
    if (now < this.#wake) return;
    this.#leave(now);
    // Instances asked for by name come first: an application waits for them.
    this.#askForWanted(now);
    if (now >= this.#nextStep) this.#step(now);
    this.#outgoing.push(...this.#browses.messages(now));
    this.#wake = this.#nextDue();
  }

  // --- receiving

  /** Handles names before the records they point to, in whatever order a message has them. */
  #heard(records: readonly DnsRecord[], own: boolean, now: number): void {
    for (const record of records) if (record.type === 'PTR') this.#heardPointer(record, now);
    for (const record of records) if (record.type === 'SRV' || record.type === 'TXT') this.#heardInstance(record, now);
    for (const record of records) if (record.type === 'A' || record.type === 'AAAA') this.#heardAddress(record, own, now);
  }

  #heardPointer(record: DnsRecord & { type: 'A' | 'AAAA' | 'PTR' }, now: number): void {
    const key = record.name.toLowerCase();
    if (!this.#browses.byKey.has(key) || !isInstanceName(record.data)) return;
    if (record.ttl === 0 && this.#cache.get(record.data) === undefined) return;
    const instance = this.#cache.hear(record.data, now);
    const set = instance.listed.get(key) ?? new RecordSet(1);
    if (record.ttl === 0 && set.isEmpty) return;
    instance.listed.set(key, set);
    this.#put(set, record, now, [instance]);
    if (!isWhole(instance)) this.#wakeAt(instance.missing.next);
  }

  #heardInstance(record: DnsRecord & { type: 'SRV' | 'TXT' }, now: number): void {
    const instance = this.#cache.get(record.name);
    if (instance === undefined || !isUsable(record)) return;
    this.#put(record.type === 'SRV' ? instance.srv : instance.txt, record, now, [instance]);
    if (record.type !== 'SRV') return;
    this.#cache.link(instance, now);
    for (const host of instance.hosts) if (isUnknown(host)) this.#wakeAt(host.missing.next);
  }

  #heardAddress(record: DnsRecord & { type: 'A' | 'AAAA' | 'PTR' }, own: boolean, now: number): void {
    const host = this.#cache.hosts.get(record.name.toLowerCase());
    if (host === undefined || !isUnicast(record.data, own)) return;
    this.#put(record.type === 'A' ? host.a : host.aaaa, record, now, host.instances);
  }

  #put(set: RecordSet, record: DnsRecord, now: number, instances: Iterable<Instance>): void {
    if (set.put(record, now, this.#random())) for (const instance of instances) this.#touched.add(instance);
    this.#wakeAt(set.nextTimeout());
  }

  // --- asking

  #askForWanted(now: number): void {
    const packer = new QuestionPacker(Number.POSITIVE_INFINITY);
    for (const instance of this.#cache.wanted) {
      if (instance.wanted === null || instance.wanted.next > now) continue;
      instance.wanted.asked(now);
      instance.askedAt = now;
      for (const type of ['SRV', 'TXT']) packer.add(instance.name, type);
      for (const host of instance.hosts) {
        host.askedAt = now;
        for (const type of ['A', 'AAAA']) packer.add(host.name, type);
      }
    }
    this.#outgoing.push(...packer.messages());
  }

  #step(now: number): void {
    this.#nextStep = now + STEP;
    this.#expire(now);
    const packer = new QuestionPacker(MAX_MESSAGES);
    for (const instance of this.#cache.instances)
      if (!packer.isFull) this.#askFor(packer, instance, { SRV: instance.srv, TXT: instance.txt }, !isWhole(instance), now);
    for (const host of this.#cache.hosts.values())
      if (!packer.isFull) this.#askFor(packer, host, { A: host.a, AAAA: host.aaaa }, isUnknown(host), now);
    this.#outgoing.push(...packer.messages());
  }

  /** @param lacks whether records are missing; a host with an address of one family may have none of the other */
  #askFor(packer: QuestionPacker, each: Instance | Host, sets: Readonly<Record<string, RecordSet>>, lacks: boolean, now: number): void {
    const isMissing = lacks && each.missing.next <= now;
    const wanted = Object.entries(sets).filter(([, set]) => set.takeRefresh(now, this.#random) || (isMissing && set.isEmpty));
    if (isMissing) each.missing.asked(now);
    if (wanted.length === 0 || each.askedAt + SECOND > now) return;
    each.askedAt = now;
    for (const [type] of wanted) packer.add(each.name, type);
  }

  // --- time

  #leave(now: number): void {
    for (const instance of this.#leaving) {
      if (instance.askedAt + SECOND > now) continue;
      this.#leaving.delete(instance);
      this.#touched.add(instance);
      this.#cache.unwant(instance, now);
    }
  }

  #expire(now: number): void {
    for (const host of this.#cache.hosts.values()) {
      const changed = [host.a.expire(now), host.aaaa.expire(now)].includes(true);
      if (changed) for (const instance of host.instances) this.#touched.add(instance);
      if (changed && isUnknown(host)) host.missing = new Schedule(this.#soon(now), TRIES);
    }
    for (const instance of [...this.#cache.instances]) {
      this.#expireListed(instance, now);
      if (this.#cache.get(instance.name) !== instance) continue;
      const [srv, txt] = [instance.srv.expire(now), instance.txt.expire(now)];
      if (srv) this.#cache.link(instance, now);
      if (!srv && !txt) continue;
      this.#touched.add(instance);
      instance.missing = new Schedule(this.#soon(now), TRIES);
    }
  }

  #expireListed(instance: Instance, now: number): void {
    for (const [key, set] of [...instance.listed]) {
      const browse = this.#browses.byKey.get(key);
      if (browse !== undefined && set.takeRefresh(now, this.#random)) browse.refresh = true;
      if (!set.expire(now)) continue;
      instance.listed.delete(key);
      this.#touched.add(instance);
    }
    this.#cache.forgetUnlisted(instance);
  }

  #nextDue(): number {
    let [question, cached] = [this.#browses.nextTimeout(), Number.POSITIVE_INFINITY];
    for (const { askedAt } of this.#leaving) question = Math.min(question, askedAt + SECOND);
    for (const { wanted } of this.#cache.wanted) question = Math.min(question, wanted?.next ?? Number.POSITIVE_INFINITY);
    for (const instance of this.#cache.instances) {
      for (const set of [...instance.listed.values(), instance.srv, instance.txt]) cached = Math.min(cached, set.nextTimeout());
      if (!isWhole(instance)) cached = Math.min(cached, instance.missing.next);
    }
    for (const host of this.#cache.hosts.values()) {
      cached = Math.min(cached, host.a.nextTimeout(), host.aaaa.nextTimeout());
      if (isUnknown(host)) cached = Math.min(cached, host.missing.next);
    }
    return Math.min(question, Math.max(cached, this.#nextStep));
  }

  /** Schedules a wake-up for something in the cache. */
  #wakeAt(time: number): void {
    this.#wake = Math.min(this.#wake, Math.max(time, this.#nextStep));
  }

  /**
   * Returns 20 to 120 ms from now (§5.2): other hosts may ask at the same moment, and missing records may still arrive.
   */
  #soon(now: number): number {
    return now + 20 + 100 * this.#random();
  }

  // --- reporting

  #report(instance: Instance): void {
    if (this.#cache.get(instance.name) !== instance) return;
    const service = serviceOf(instance);
    this.#cache.setComplete(instance, service !== null && service.txt !== null);
    const reported = service === null ? null : signatureOf(service);
    if (reported === instance.reported) return;
    instance.reported = reported;
    this.#events.push({ kind: 'service', name: instance.name, service });
  }

  #forgotten(instance: Instance): void {
    this.#touched.delete(instance);
    if (instance.reported !== null) this.#events.push({ kind: 'service', name: instance.name, service: null });
  }
}

function isWhole({ srv, txt }: Pick<Instance, 'srv' | 'txt'>): boolean {
  return !srv.isEmpty && !txt.isEmpty;
}

function isUnknown({ a, aaaa }: Host): boolean {
  return a.isEmpty && aaaa.isEmpty;
}

function isUsable(record: DnsRecord & { type: 'SRV' | 'TXT' }): boolean {
  if (record.type === 'SRV') return record.data.port !== 0 && isHostName(record.data.target);
  return record.data.reduce((sum, { length }) => sum + length + 1, 0) <= MAX_TXT_BYTES;
}

/**
 * Returns whether one host can have the address: not unspecified (RFC 1122 §3.2.1.3), not multicast, and loopback only
 * when this host announces it.
 */
function isUnicast(text: string, own: boolean): boolean {
  const bytes = parseAddress(text);
  if (bytes === null || bytes.every((byte) => byte === 0)) return false;
  if (bytes.length === 4) return bytes[0]! > 0 && bytes[0]! < 224 && (own || bytes[0] !== 127);
  return bytes[0] !== 0xff && (own || !bytes.every((byte, index) => byte === (index === 15 ? 1 : 0)));
}
