/**
 * The scanner of one link, sans-IO (RFC 6762, RFC 6763): asks which devices are there, keeps what they answer, reports what changes.
 *
 * - Browsing (RFC 6762 §5.2): the first question for PTR records after 20 to 120 ms, then after 1 s, then after twice the last pause, up to an hour, with
 *   the answers that are known (§7.1). A neighbour's question counts as ours when it is due within a second (§7.3), but not twice in a row: a neighbour
 *   that asks us alone could silence us.
 * - Resolving (RFC 6763 §12): what an answer did not bring along of SRV, TXT and addresses is asked for, 4 times at most.
 * - One instance asked for by name: its SRV and TXT records and the addresses of its host, at once, since nobody else waits for the same moment and
 *   responders answer for unique names without delay (§6); repeated as in browsing. Questions for shared records have messages of their own, as they would
 *   delay the answer.
 * - Refresh at 80, 85, 90 and 95 % of a record's life (§5.2), goodbye (§10.1), cache flush (§10.2).
 * - Answers count only from port 5353 (§6). That they come from the link is checked where they arrive (§11).
 *
 * After `browse`, `find`, their opposites and `receive`: `nextEvent` until null, then `nextTimeout`, which may be at once. After `handleTimeout`:
 * `transmit` and `nextEvent` until null, then `nextTimeout`.
 */
import { parseAddress } from '../address.ts';
import { isHostName, isInstanceName } from './names.ts';
import { QuestionPacker, questionWithKnown } from './questions.ts';
import { RecordSet } from './record-set.ts';
import { type DnsMessage, type DnsRecord, recordKey } from './records.ts';
import { MDNS_PORT, type MdnsSource, type Outgoing } from './responder.ts';
import { type Host, type Instance, ScanCache, Schedule } from './scan-cache.ts';
import { type ScannedService, serviceOf, signatureOf } from './scanned-service.ts';

const SECOND = 1000;
/** Times that is asked for what an answer did not bring along. */
const TRIES = 4;
/** ms between two looks at the cache, and messages with questions for what is missing or ends its life in each. */
const STEP = 100;
const MAX_MESSAGES = 4;
/** Bytes of TXT that are kept, with a length for each item (RFC 6763 §6.2). A longer record counts as none. */
const MAX_TXT_BYTES = 1300;

/** An instance is there or has changed, or is there no longer (`service` null). */
export interface ServiceEvent {
  readonly kind: 'service';
  /** The instance, in the case in which it was first heard. */
  readonly name: string;
  readonly service: ScannedService | null;
}

interface Browse {
  readonly name: string;
  readonly schedule: Schedule;
  askedAt: number;
  /** A neighbour's question counted as the last one. */
  suppressed: boolean;
  /** A record asks for it. */
  refresh: boolean;
}

/** The scanner of one link. */
export class Scanner {
  readonly #random: () => number;
  readonly #browses = new Map<string, Browse>();
  readonly #cache: ScanCache;
  /** Instances that may have changed. */
  readonly #touched = new Set<Instance>();
  readonly #events: ServiceEvent[] = [];
  readonly #outgoing: DnsMessage[] = [];
  /** Nothing is due before; what is put in may be due later. */
  #wake = Number.POSITIVE_INFINITY;
  /** When the cache is looked through again at the earliest, so that a thousand devices are asked in a few messages and looked at together. */
  #nextStep = Number.NEGATIVE_INFINITY;

  /** @param random 0 to below 1 at each call */
  constructor(random: () => number) {
    this.#random = random;
    this.#cache = new ScanCache(
      (instance) => this.#forgotten(instance),
      (now) => new Schedule(this.#soon(now), TRIES),
    );
  }

  /** Begins to ask for the instances that the name, of the service type or a subtype, lists. A name is browsed once. */
  browse(name: string, now: number): void {
    const schedule = new Schedule(this.#soon(now));
    this.#browses.set(name.toLowerCase(), { name, schedule, askedAt: Number.NEGATIVE_INFINITY, suppressed: false, refresh: false });
    this.#wake = Math.min(this.#wake, schedule.next);
  }

  endBrowse(name: string): void {
    const key = name.toLowerCase();
    this.#browses.delete(key);
    for (const instance of [...this.#cache.instances]) {
      if (!instance.listed.delete(key)) continue;
      this.#touched.add(instance);
      this.#cache.forgetUnlisted(instance);
    }
  }

  /** Asks for one instance by its name, now and from the beginning. */
  find(instance: string, now: number): void {
    this.#touched.add(this.#cache.want(instance, new Schedule(now), now));
    this.#wake = Math.min(this.#wake, now);
  }

  endFind(name: string, now: number): void {
    const instance = this.#cache.get(name);
    if (instance === undefined) return;
    this.#touched.add(instance);
    this.#cache.unwant(instance, now);
  }

  /** A message arrived on the link. @param own it comes from an address of this host */
  receive(message: DnsMessage, from: MdnsSource, now: number, own = false): void {
    if (from.port !== MDNS_PORT) return;
    if (message.response) this.#heard([...message.answers, ...message.additionals], own, now);
    else if (!own && !message.truncated) this.#overheard(message, now);
  }

  /** The next message to send, null when none waits. */
  transmit(): Outgoing | null {
    const message = this.#outgoing.shift();
    return message === undefined ? null : { message, to: null };
  }

  /** What has become of an instance, null when nothing has. */
  nextEvent(): ServiceEvent | null {
    for (const instance of this.#touched) this.#report(instance);
    this.#touched.clear();
    return this.#events.shift() ?? null;
  }

  /** When to call `handleTimeout`, ms; Infinity: not before something arrives. */
  nextTimeout(): number {
    return this.#wake;
  }

  /** Forgets what has expired and makes the questions that are due. */
  handleTimeout(now: number): void {
    if (now < this.#wake) return;
    // What a person waits for comes first.
    this.#askForWanted(now);
    if (now >= this.#nextStep) this.#step(now);
    for (const browse of this.#browses.values()) this.#askForShared(browse, now);
    this.#wake = this.#nextDue();
  }

  // --- what is heard

  /** Names come before what they point to, wherever they stand in a message. */
  #heard(records: readonly DnsRecord[], own: boolean, now: number): void {
    for (const record of records) if (record.type === 'PTR') this.#heardPointer(record, now);
    for (const record of records) if (record.type === 'SRV' || record.type === 'TXT') this.#heardInstance(record, now);
    for (const record of records) if (record.type === 'A' || record.type === 'AAAA') this.#heardAddress(record, own, now);
  }

  #heardPointer(record: DnsRecord & { type: 'A' | 'AAAA' | 'PTR' }, now: number): void {
    const key = record.name.toLowerCase();
    if (!this.#browses.has(key) || !isInstanceName(record.data)) return;
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

  /** A neighbour's query (§7.3). That it wants no answer that we lack shows in what it knows. */
  #overheard({ questions, answers }: DnsMessage, now: number): void {
    const asked = new Set(questions.flatMap(({ name, type, unicast }) => (type === 'PTR' && !unicast ? [name.toLowerCase()] : [])));
    for (const key of asked) {
      const browse = this.#browses.get(key);
      if (browse === undefined || browse.suppressed || browse.schedule.next > now + SECOND) continue;
      const known = new Set(this.#knownAnswers(browse, now).map(recordKey));
      if (!answers.every((record) => record.name.toLowerCase() !== key || known.has(recordKey(record)))) continue;
      browse.suppressed = true;
      browse.schedule.asked(now);
    }
  }

  // --- what is asked

  #askForShared(browse: Browse, now: number): void {
    const due = browse.schedule.next <= now;
    // What was asked within the last second is being answered.
    const again = browse.refresh && browse.askedAt + SECOND <= now;
    browse.refresh = false;
    if (!due && !again) return;
    if (due) browse.schedule.asked(now);
    browse.askedAt = now;
    browse.suppressed = false;
    this.#outgoing.push(...questionWithKnown({ name: browse.name, type: 'PTR', unicast: false }, this.#knownAnswers(browse, now)));
  }

  #knownAnswers({ name }: Browse, now: number): DnsRecord[] {
    const key = name.toLowerCase();
    return [...this.#cache.instances].flatMap((instance) => instance.listed.get(key)?.knownAnswers(now) ?? []);
  }

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
    for (const instance of this.#cache.instances) if (!packer.isFull) this.#askForInstance(packer, instance, now);
    for (const host of this.#cache.hosts.values()) if (!packer.isFull) this.#askForHost(packer, host, now);
    this.#outgoing.push(...packer.messages());
  }

  #askForInstance(packer: QuestionPacker, instance: Instance, now: number): void {
    const { srv, txt, missing } = instance;
    const isMissing = !isWhole(instance) && missing.next <= now;
    const [againSrv, againTxt] = [srv.takeRefresh(now, this.#random), txt.takeRefresh(now, this.#random)];
    if (isMissing) missing.asked(now);
    if (instance.askedAt + SECOND > now) return;
    const types = [...(againSrv || (isMissing && srv.isEmpty) ? ['SRV'] : []), ...(againTxt || (isMissing && txt.isEmpty) ? ['TXT'] : [])];
    if (types.length > 0) instance.askedAt = now;
    for (const type of types) packer.add(instance.name, type);
  }

  /** A host with an address of one family may have none of the other. */
  #askForHost(packer: QuestionPacker, host: Host, now: number): void {
    const { a, aaaa, missing } = host;
    const isMissing = isUnknown(host) && missing.next <= now;
    const [againA, againAaaa] = [a.takeRefresh(now, this.#random), aaaa.takeRefresh(now, this.#random)];
    if (isMissing) missing.asked(now);
    if (host.askedAt + SECOND > now) return;
    const types = [...(againA || isMissing ? ['A'] : []), ...(againAaaa || isMissing ? ['AAAA'] : [])];
    if (types.length > 0) host.askedAt = now;
    for (const type of types) packer.add(host.name, type);
  }

  // --- time

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
      const browse = this.#browses.get(key);
      if (browse !== undefined && set.takeRefresh(now, this.#random)) browse.refresh = true;
      if (!set.expire(now)) continue;
      instance.listed.delete(key);
      this.#touched.add(instance);
    }
    this.#cache.forgetUnlisted(instance);
  }

  #nextDue(): number {
    let [question, cached] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (const { schedule } of this.#browses.values()) question = Math.min(question, schedule.next);
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

  /** Something in the cache is due then. */
  #wakeAt(time: number): void {
    this.#wake = Math.min(this.#wake, Math.max(time, this.#nextStep));
  }

  /** 20 to 120 ms from now (§5.2): others may ask at the same moment, and what is missing may still come. */
  #soon(now: number): number {
    return now + 20 + 100 * this.#random();
  }

  // --- what is reported

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

/** An address that one host can have: not unspecified (RFC 1122 §3.2.1.3), of several hosts, nor loopback unless it is this host that says so. */
function isUnicast(text: string, own: boolean): boolean {
  const bytes = parseAddress(text);
  if (bytes === null || bytes.every((byte) => byte === 0)) return false;
  if (bytes.length === 4) return bytes[0]! > 0 && bytes[0]! < 224 && (own || bytes[0] !== 127);
  return bytes[0] !== 0xff && (own || !bytes.every((byte, index) => byte === (index === 15 ? 1 : 0)));
}
