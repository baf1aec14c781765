/**
 * The responder of one link, sans-IO (RFC 6762): asks whether the name is free, announces, answers, takes back.
 *
 * - Probing (§8.1): three queries, 250 ms apart, after a random wait of up to 250 ms; nothing is answered before. Announcing (§8.3): twice,
 *   a second apart; once more each time the records change.
 * - The name is the device's identity: it is what clients ask for, and a device that took another one could not be found. So a conflict
 *   (§9) is told, and answering goes on, but without the cache-flush bit: both devices stay in the caches, and a client finds out by the
 *   handshake which is its own. No tie is broken (§8.2), since neither would yield.
 * - Answers (§6) to questions for our own records leave at once, for shared ones after 20 to 120 ms, after a query that announces more
 *   known answers after 400 to 500 ms (§7.2); no record is multicast twice within a second, but in defence against a probe. What another
 *   responder answered meanwhile is dropped (§7.4).
 * - Answers go to one address where the querier asks so (§5.4) or is a plain DNS resolver (§6.7).
 *
 * After `receive` and `setRecords`: `nextEvent` until null, then `nextTimeout`, which may be at once. After `handleTimeout`: `transmit` until null,
 * then `nextTimeout`.
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
/** Answers that wait at a time; above that questions are dropped, and asked again. */
const MAX_WAITING = 32;

/** Where a message came from. */
export interface MdnsSource {
  readonly address: string;
  readonly port: number;
}

/** A message to send; `to` null: to everybody on the link. */
export interface Outgoing {
  readonly message: DnsMessage;
  readonly to: MdnsSource | null;
}

/** Another device has announced our names with other data, as `from` shows. Reported once. */
export interface MdnsConflict {
  readonly kind: 'conflict';
  readonly from: MdnsSource;
}

interface Waiting {
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
  /** Nobody objected: announced once at least. */
  #isOurs = false;
  /** When the next probe or announcement is due. */
  #nextStep: number;
  #waiting: Waiting[] = [];
  /** Messages that `transmit` gives out: what one `handleTimeout` made. */
  readonly #outgoing: Outgoing[] = [];
  /** When each record was last multicast. */
  readonly #lastMulticast = new Map<string, number>();
  /** Another device has our names. */
  #isShared = false;
  #event: MdnsConflict | null = null;

  /** @param random 0 to below 1 at each call. @param now ms */
  constructor(records: readonly DnsRecord[], random: () => number, now: number) {
    this.#records = records;
    this.#random = random;
    this.#nextStep = now + random() * PROBE_INTERVAL;
  }

  /** The records are others now (TXT, addresses): they are announced again. */
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

  /** A message arrived on the link. @param own it comes from an address of this host: its addresses are ours as well */
  receive(message: DnsMessage, from: MdnsSource, now: number, own = false): void {
    if (message.response) this.#heard(message, from, own);
    else this.#asked(message, from, now, own);
  }

  /** The next message to send, null when none waits. */
  transmit(): Outgoing | null {
    return this.#outgoing.shift() ?? null;
  }

  /** A conflict, once; else null. */
  nextEvent(): MdnsConflict | null {
    const event = this.#event;
    this.#event = null;
    return event;
  }

  /** When to call `handleTimeout`, ms; Infinity: not before something arrives. */
  nextTimeout(): number {
    return Math.min(this.#nextStep, ...this.#waiting.map(({ due }) => due));
  }

  /** Makes the probe or announcement and the answers that are due. */
  handleTimeout(now: number): void {
    if (this.#nextStep <= now) this.#step(now);
    const isDue = ({ due }: Waiting) => due <= now;
    // An answer takes its records out of those that wait behind it, and some of these with them.
    for (let index = this.#waiting.findIndex(isDue); index >= 0; index = this.#waiting.findIndex(isDue))
      this.#answer(this.#waiting.splice(index, 1)[0]!, now);
  }

  /** What takes everything back (§10.1), null before it was announced. The type's own entry belongs to other devices as well. */
  goodbye(): DnsMessage | null {
    if (!this.#isOurs) return null;
    const own = this.#records.filter(({ name, type }) => type !== 'NSEC' && !sameName(name, SERVICE_TYPES));
    return dnsResponse({ answers: own.map((record) => ({ ...record, ttl: 0 })) });
  }

  /** The next probe or announcement. */
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

  /** The records we are about to use go along (§8.2). */
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
    // Authorities are a probe's.
    this.#look(query.authorities, from, own);
    if (!this.#isOurs) return;
    if (query.questions.length === 0) this.#knowsMore(query, from);
    const isLegacy = from.port !== MDNS_PORT;
    const known = knownAnswers(isLegacy ? [] : query.answers);
    const [direct, everybody]: [DnsRecord[], DnsRecord[]] = [[], []];
    for (const question of query.questions) {
      const answers = withoutKnown(answersTo(question, this.#records), known);
      for (const record of answers) {
        const list = isLegacy || (question.unicast && this.#isFresh(record, now)) ? direct : everybody;
        if (!direct.includes(record) && !everybody.includes(record)) list.push(record);
      }
    }
    if (direct.length > 0) this.#wait({ due: now, records: direct, query, from, to: from });
    if (everybody.length > 0) this.#wait({ due: this.#dueAt(everybody, query, now), records: everybody, query, from, to: null });
  }

  /** A querier who asked before goes on telling what it knows. */
  #knowsMore(query: DnsMessage, { address, port }: MdnsSource): void {
    const known = knownAnswers(query.answers);
    for (const waiting of this.#waiting) {
      if (waiting.query.truncated && waiting.from.address === address && waiting.from.port === port)
        waiting.records = withoutKnown(waiting.records, known);
    }
    this.#waiting = this.#waiting.filter(({ records }) => records.length > 0);
  }

  #wait(waiting: Waiting): void {
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(waiting);
  }

  #dueAt(records: readonly DnsRecord[], query: DnsMessage, now: number): number {
    // A probe is over in 250 ms: whoever asks has to hear at once whose the name is.
    if (query.authorities.length > 0) return now;
    const delay = query.truncated ? 400 + 100 * this.#random() : records.every(({ flush }) => flush) ? 0 : 20 + 100 * this.#random();
    return Math.max(now + delay, this.#lastOf(records) + SECOND);
  }

  #answer({ records, query, to }: Waiting, now: number): void {
    const additionals = additionalsOf(records, this.#records);
    if (to === null) {
      this.#multicast(records, additionals, now);
      return;
    }
    const response = dnsResponse({ answers: records, additionals });
    this.#outgoing.push({ message: to.port === MDNS_PORT ? response : legacyResponse(query, response), to });
  }

  /** Answers that wait for the same records are through with it. */
  #multicast(answers: readonly DnsRecord[], additionals: readonly DnsRecord[], now: number): void {
    for (const record of [...answers, ...additionals]) this.#lastMulticast.set(recordKey(record), now);
    for (const waiting of this.#waiting)
      if (waiting.to === null) waiting.records = waiting.records.filter((record) => !answers.includes(record));
    this.#waiting = this.#waiting.filter(({ records }) => records.length > 0);
    this.#outgoing.push({ message: dnsResponse({ answers, additionals }), to: null });
  }

  /** Multicast within a quarter of its life, so that all caches have it (§5.4). */
  #isFresh(record: DnsRecord, now: number): boolean {
    return now - this.#lastOf([record]) <= (record.ttl * SECOND) / 4;
  }

  #lastOf(records: readonly DnsRecord[]): number {
    return Math.max(
      Number.NEGATIVE_INFINITY,
      ...records.map((record) => this.#lastMulticast.get(recordKey(record)) ?? Number.NEGATIVE_INFINITY),
    );
  }

  /** A record of ours with other data is another device's. TXT may be our own of a moment ago. */
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
