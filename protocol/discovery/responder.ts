/**
 * The responder of one link, sans-IO (RFC 6762): probes for the name, announces, answers, withdraws.
 *
 * - Probing (§8.1): three queries, 250 ms apart, after a random wait of up to 250 ms; nothing is answered before.
 *   Announcing (§8.3): twice, a second apart, and again each time the records change.
 * - The name is the device's identity: clients ask for it, so a device that chose another one could not be found. A
 *   conflict (§9) is therefore reported, and answering continues without the cache-flush bit: both devices stay in the
 *   caches, and the handshake shows a client which one is its own. No tie is broken (§8.2), since neither would yield.
 * - Answers (§6) to questions for unique records leave immediately, for shared ones after 20 to 120 ms, after a query
 *   that announces more known answers after 400 to 500 ms (§7.2). No record is multicast twice within a second, except
 *   in defence against a probe. Answers that another responder sent meanwhile are dropped (§7.4).
 * - Answers are unicast where the querier asks for that (§5.4) or is a plain DNS resolver (§6.7).
 *
 * After `receive` and `setRecords`: `nextEvent` until null, then `nextTimeout`, which may be immediate. After
 * `handleTimeout`: `transmit` until null, then `nextTimeout`.
 */
import { additionalsOf, answersTo, knownAnswers, legacyResponse, withoutKnown } from './answer.ts';
import { type DnsMessage, type DnsRecord, dnsQuery, dnsResponse, recordKey, sameName } from './records.ts';
import { SERVICE_TYPES } from './service.ts';

/** UDP port of multicast DNS. */
export const MDNS_PORT = 5353;

const PROBES = 3;
const PROBE_INTERVAL = 250;
const ANNOUNCEMENTS = 2;
/** ms between two multicasts of a record (§6), and between announcements (§8.3). */
const SECOND = 1000;
/** Most waiting answers; beyond it questions are dropped, and queriers repeat them. */
export const MAX_WAITING = 32;

/** The source of a message. */
export interface MdnsSource {
  readonly address: string;
  readonly port: number;
}

/** A message to send; `to` null: multicast on the link. */
export interface OutgoingDnsMessage {
  readonly message: DnsMessage;
  readonly to: MdnsSource | null;
}

/** Another device has announced our names with other data; `from` is its address. Reported once. */
export interface MdnsConflict {
  readonly kind: 'conflict';
  readonly from: MdnsSource;
}

interface DelayedAnswer {
  due: number;
  records: DnsRecord[];
  readonly query: DnsMessage;
  readonly from: MdnsSource;
  readonly to: MdnsSource | null;
}

/** The responder of one link. */
export class Responder {
  readonly #random: () => number;
  #records: readonly DnsRecord[];
  #probesLeft = PROBES;
  #announcementsLeft = ANNOUNCEMENTS;
  /** Announced at least once, without objection. */
  #isOurs = false;
  /** When the next probe or announcement is due. */
  #nextStep: number;
  #waiting: DelayedAnswer[] = [];
  /** Messages for `transmit`, made by one `handleTimeout`. */
  readonly #outgoing: OutgoingDnsMessage[] = [];
  /** When each record was last multicast. */
  readonly #lastMulticast = new Map<string, number>();
  /** Another device uses our names. */
  #isShared = false;
  #event: MdnsConflict | null = null;

  /** @param random 0 to below 1 at each call. @param now ms */
  constructor(records: readonly DnsRecord[], random: () => number, now: number) {
    this.#records = records;
    this.#random = random;
    this.#nextStep = now + random() * PROBE_INTERVAL;
  }

  /** Replaces the records (TXT, addresses) and announces them again. */
  setRecords(records: readonly DnsRecord[], now: number): void {
    this.#records = this.#isShared ? withoutFlush(records) : records;
    this.#waiting = [];
    const keys = new Set(records.map(recordKey));
    for (const key of this.#lastMulticast.keys()) if (!keys.has(key)) this.#lastMulticast.delete(key);
    if (!this.#isOurs) return;
    const last = this.#announcementsLeft > 0 ? this.#nextStep : this.#lastOf(this.#records.slice(0, 1)) + SECOND;
    this.#announcementsLeft = ANNOUNCEMENTS;
    this.#nextStep = Math.max(now, last);
  }

  /**
   * Handles a message that arrived on the link.
   * @param own it comes from an address of this host, whose addresses are also ours
   */
  receive(message: DnsMessage, from: MdnsSource, now: number, own = false): void {
    if (message.response) this.#heard(message, from, own);
    else this.#asked(message, from, now, own);
  }

  /** Returns the next message to send, null when none waits. */
  transmit(): OutgoingDnsMessage | null {
    return this.#outgoing.shift() ?? null;
  }

  /** Returns a conflict, once; else null. */
  nextEvent(): MdnsConflict | null {
    const event = this.#event;
    this.#event = null;
    return event;
  }

  /** Returns when to call `handleTimeout`, ms; Infinity: not before something arrives. */
  nextTimeout(): number {
    return Math.min(this.#nextStep, ...this.#waiting.map(({ due }) => due));
  }

  /** Creates the probe or announcement and the answers that are due. */
  handleTimeout(now: number): void {
    if (this.#nextStep <= now) this.#step(now);
    const isDue = ({ due }: DelayedAnswer) => due <= now;
    // An answer removes its records from those that wait after it, and removes the ones that become empty.
    for (let index = this.#waiting.findIndex(isDue); index >= 0; index = this.#waiting.findIndex(isDue))
      this.#answer(this.#waiting.splice(index, 1)[0]!, now);
  }

  /**
   * Returns the message that withdraws everything (§10.1), null before it was announced. Omits the entry of the service
   * type, which other devices share.
   */
  goodbye(): DnsMessage | null {
    if (!this.#isOurs) return null;
    const own = this.#records.filter(({ name, type }) => type !== 'NSEC' && !sameName(name, SERVICE_TYPES));
    return dnsResponse({ answers: own.map((record) => ({ ...record, ttl: 0 })) });
  }

  /** Sends the next probe or announcement. */
  #step(now: number): void {
    if (this.#probesLeft > 0) {
      this.#probesLeft--;
      this.#nextStep = now + PROBE_INTERVAL;
      this.#outgoing.push({ message: this.#probe(), to: null });
      return;
    }
    this.#announcementsLeft--;
    this.#isOurs = true;
    this.#nextStep = this.#announcementsLeft > 0 ? now + SECOND : Number.POSITIVE_INFINITY;
    this.#multicast(
      this.#records.filter(({ type }) => type !== 'NSEC'),
      [],
      now,
    );
  }

  /** Returns a probe, which includes the records that we are about to use (§8.2). */
  #probe(): DnsMessage {
    const unique = this.#records.filter(({ type }) => type !== 'PTR' && type !== 'NSEC');
    const names = [...new Set(unique.map(({ name }) => name))];
    return dnsQuery({
      questions: names.map((name) => ({ name, type: 'ANY', unicast: false })),
      authorities: unique.map((record) => ({ ...record, flush: false })),
    });
  }

  #heard(message: DnsMessage, from: MdnsSource, own: boolean): void {
    const records = [...message.answers, ...message.additionals];
    this.#look(records, from, own);
    const answered = new Map(message.answers.map((record) => [recordKey(record), record.ttl]));
    for (const waiting of this.#waiting.filter(({ to }) => to === null))
      waiting.records = waiting.records.filter((record) => record.flush || (answered.get(recordKey(record)) ?? -1) < record.ttl);
    this.#waiting = this.#waiting.filter(({ records }) => records.length > 0);
  }

  #asked(query: DnsMessage, from: MdnsSource, now: number, own: boolean): void {
    // The authorities are those of a probe.
    this.#look(query.authorities, from, own);
    if (!this.#isOurs) return;
    if (query.questions.length === 0) this.#knowsMore(query, from);
    const isLegacy = from.port !== MDNS_PORT;
    const known = knownAnswers(isLegacy ? [] : query.answers);
    const [direct, multicast]: [DnsRecord[], DnsRecord[]] = [[], []];
    for (const question of query.questions) {
      const answers = withoutKnown(answersTo(question, this.#records), known);
      for (const record of answers) {
        const list = isLegacy || (question.unicast && this.#isFresh(record, now)) ? direct : multicast;
        if (!direct.includes(record) && !multicast.includes(record)) list.push(record);
      }
    }
    if (direct.length > 0) this.#wait({ due: now, records: direct, query, from, to: from });
    if (multicast.length > 0) this.#wait({ due: this.#dueAt(multicast, query, now), records: multicast, query, from, to: null });
  }

  /** A querier continues its list of known answers. */
  #knowsMore(query: DnsMessage, { address, port }: MdnsSource): void {
    const known = knownAnswers(query.answers);
    for (const waiting of this.#waiting) {
      if (waiting.query.truncated && waiting.from.address === address && waiting.from.port === port)
        waiting.records = withoutKnown(waiting.records, known);
    }
    this.#waiting = this.#waiting.filter(({ records }) => records.length > 0);
  }

  #wait(waiting: DelayedAnswer): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(waiting);
  }

  #dueAt(records: readonly DnsRecord[], query: DnsMessage, now: number): number {
    // A probe ends within 250 ms: the prober has to hear immediately that the name is taken.
    if (query.authorities.length > 0) return now;
    const delay = query.truncated ? 400 + 100 * this.#random() : records.every(({ flush }) => flush) ? 0 : 20 + 100 * this.#random();
    return Math.max(now + delay, this.#lastOf(records) + SECOND);
  }

  #answer({ records, query, to }: DelayedAnswer, now: number): void {
    const additionals = additionalsOf(records, this.#records);
    if (to === null) {
      this.#multicast(records, additionals, now);
      return;
    }
    const response = dnsResponse({ answers: records, additionals });
    this.#outgoing.push({ message: to.port === MDNS_PORT ? response : legacyResponse(query, response), to });
  }

  /** Removes the answers from those that wait for the same records. */
  #multicast(answers: readonly DnsRecord[], additionals: readonly DnsRecord[], now: number): void {
    for (const record of [...answers, ...additionals]) this.#lastMulticast.set(recordKey(record), now);
    for (const waiting of this.#waiting)
      if (waiting.to === null) waiting.records = waiting.records.filter((record) => !answers.includes(record));
    this.#waiting = this.#waiting.filter(({ records }) => records.length > 0);
    this.#outgoing.push({ message: dnsResponse({ answers, additionals }), to: null });
  }

  /** Returns whether it was multicast within a quarter of its life, so that all caches have it (§5.4). */
  #isFresh(record: DnsRecord, now: number): boolean {
    return now - this.#lastOf([record]) <= (record.ttl * SECOND) / 4;
  }

  #lastOf(records: readonly DnsRecord[]): number {
    return Math.max(
      Number.NEGATIVE_INFINITY,
      ...records.map((record) => this.#lastMulticast.get(recordKey(record)) ?? Number.NEGATIVE_INFINITY),
    );
  }

  /**
   * Detects a conflict: one of our records with other data belongs to another device. TXT is ignored: it may be our own
   * earlier one.
   */
  #look(records: readonly DnsRecord[], from: MdnsSource, own: boolean): void {
    if (this.#isShared) return;
    const types = own ? ['SRV'] : ['SRV', 'A', 'AAAA'];
    const keys = new Set(this.#records.map(recordKey));
    const other = records.some(
      (record) =>
        types.includes(record.type) &&
        record.ttl > 0 &&
        !keys.has(recordKey(record)) &&
        this.#records.some(({ name, type }) => type === record.type && sameName(name, record.name)),
    );
    if (!other) return;
    this.#isShared = true;
    this.#event = { kind: 'conflict', from };
    this.#records = withoutFlush(this.#records);
  }
}

function withoutFlush(records: readonly DnsRecord[]): DnsRecord[] {
  return records.map((record) => ({ ...record, flush: false }));
}
