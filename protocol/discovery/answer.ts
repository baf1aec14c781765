/** Which records answer a question (RFC 6762 §6, §7.1; RFC 6763 §12). */
import { type DnsMessage, type DnsQuestion, type DnsRecord, recordKey, sameName } from './records.ts';

/** TTL in answers to those who are no multicast DNS queriers, s (RFC 6762 §6.7). */
const LEGACY_TTL = 10;

/** Whether a record is one the question asks for. NSEC is an answer only where there is nothing else. */
export function matches(question: DnsQuestion, record: DnsRecord): boolean {
  return sameName(question.name, record.name) && (question.type === 'ANY' ? record.type !== 'NSEC' : question.type === record.type);
}

/** The answers to a question; for a unique name without such a record the one that says so. */
export function answersTo(question: DnsQuestion, records: readonly DnsRecord[]): DnsRecord[] {
  const found = records.filter((record) => matches(question, record));
  return found.length > 0 ? found : records.filter(({ name, type }) => type === 'NSEC' && sameName(name, question.name));
}

/** What a querier knows: the life that is left to each record, s. Made once for a query, which may have thousands of questions. */
export type KnownAnswers = ReadonlyMap<string, number>;

export function knownAnswers(records: readonly DnsRecord[]): KnownAnswers {
  return new Map(records.map((record) => [recordKey(record), record.ttl]));
}

/** The answers without those that the querier knows for at least half of their life (RFC 6762 §7.1). */
export function withoutKnown(answers: readonly DnsRecord[], known: KnownAnswers): DnsRecord[] {
  return answers.filter((record) => (known.get(recordKey(record)) ?? -1) < record.ttl / 2);
}

/** What a querier will ask next: where a PTR points to, then the addresses of the host (RFC 6763 §12). */
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

/** The answer to a plain DNS resolver: its id and question again, short lives, no cache-flush bit (RFC 6762 §6.7). */
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
