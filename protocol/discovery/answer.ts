/** Selects the records that answer a question (RFC 6762 §6, §7.1; RFC 6763 §12). */
import { type DnsMessage, type DnsQuestion, type DnsRecord, recordKey, sameName } from './records.ts';

/** TTL in answers to queriers that do not speak multicast DNS, s (RFC 6762 §6.7). */
const LEGACY_TTL = 10;

/** Returns whether a question asks for a record. NSEC is an answer only where there is nothing else. */
export function matches(question: DnsQuestion, record: DnsRecord): boolean {
  return sameName(question.name, record.name) && (question.type === 'ANY' ? record.type !== 'NSEC' : question.type === record.type);
}

/** Returns the answers to a question; for a unique name without such a record, the NSEC record that says so. */
export function answersTo(question: DnsQuestion, records: readonly DnsRecord[]): DnsRecord[] {
  const found = records.filter((record) => matches(question, record));
  return found.length > 0 ? found : records.filter(({ name, type }) => type === 'NSEC' && sameName(name, question.name));
}

/**
 * The records that a querier knows, with the remaining lifetime of each, s. Built once per query, which may have
 * thousands of questions.
 */
export type KnownAnswers = ReadonlyMap<string, number>;

export function knownAnswers(records: readonly DnsRecord[]): KnownAnswers {
  return new Map(records.map((record) => [recordKey(record), record.ttl]));
}

/** Returns the answers without those that the querier knows for at least half of their lifetime (RFC 6762 §7.1). */
export function withoutKnown(answers: readonly DnsRecord[], known: KnownAnswers): DnsRecord[] {
  return answers.filter((record) => (known.get(recordKey(record)) ?? -1) < record.ttl / 2);
}

/**
 * Returns the records that a querier will need next: the targets of PTR records, then the addresses of hosts (RFC 6763
 * §12).
 */
export function additionalsOf(answers: readonly DnsRecord[], records: readonly DnsRecord[]): DnsRecord[] {
  const chosen = new Set(answers);
  const names = answers.flatMap((record) => (record.type === 'PTR' ? [record.data] : []));
  const targets = records.flatMap((record) => {
    const { type } = record;
    return type === 'SRV' && (answers.includes(record) || names.some((name) => sameName(name, record.name))) ? [record.data.target] : [];
  });
  const wanted = [...names, ...targets];
  return records.filter(
    (record) =>
      record.type !== 'NSEC' && record.type !== 'PTR' && !chosen.has(record) && wanted.some((name) => sameName(name, record.name)),
  );
}

/**
 * Returns the answer to a plain DNS resolver: repeats its id and question, with short lifetimes and no cache-flush bit
 * (RFC 6762 §6.7).
 */
export function legacyResponse(query: DnsMessage, response: DnsMessage): DnsMessage {
  const plain = (records: readonly DnsRecord[]): DnsRecord[] =>
    records.map((record) => ({ ...record, ttl: Math.min(record.ttl, LEGACY_TTL), flush: false }));
  return {
    ...response,
    id: query.id,
    questions: query.questions.map((question) => ({ ...question, unicast: false })),
    answers: plain(response.answers),
    additionals: plain(response.additionals),
  };
}
