/** Packs the questions of a scanner into messages that fit an Ethernet frame (RFC 6762 §17). */
import { type DnsMessage, type DnsQuestion, type DnsRecord, dnsQuery } from './records.ts';

/** Maximum bytes of one message, names not compressed: 1,500 less the headers of IPv6 and UDP, and some margin. */
export const MAX_MESSAGE = 1400;
/** Bytes of the DNS header, of a question and of a PTR record, without names. */
const HEADER = 12;
const QUESTION = 4;
const RECORD = 10;
/** Most messages with known answers after one question: enough for a full table of device names. */
const MAX_KNOWN_MESSAGES = 64;

/** Packs questions for unique names into a few messages. */
export class QuestionPacker {
  readonly #limit: number;
  readonly #messages: DnsQuestion[][] = [];
  #room = 0;

  /** @param limit most messages */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** True when the last message may have no room for all questions of one name. */
  get isFull(): boolean {
    return this.#messages.length === this.#limit && this.#room < 4 * (QUESTION + 257);
  }

  add(name: string, type: string): void {
    const size = QUESTION + nameSize(name);
    if (size > this.#room) {
      this.#messages.push([]);
      this.#room = MAX_MESSAGE - HEADER;
    }
    this.#room -= size;
    this.#messages.at(-1)!.push({ name, type, unicast: false });
  }

  messages(): DnsMessage[] {
    return this.#messages.map((questions) => dnsQuery({ questions }));
  }
}

/**
 * Returns one question with the known answers (§7.1), in as many messages as they need, all but the last with the TC
 * bit (§7.2). Answers beyond 64 messages are left out: their owners answer again.
 */
export function questionWithKnown(question: DnsQuestion, known: readonly DnsRecord[]): DnsMessage[] {
  const parts: DnsRecord[][] = [[]];
  let room = MAX_MESSAGE - HEADER - QUESTION - nameSize(question.name);
  for (const record of known) {
    const size = RECORD + nameSize(record.name) + (typeof record.data === 'string' ? nameSize(record.data) : 0);
    if (size > room) {
      if (parts.length === MAX_KNOWN_MESSAGES) break;
      parts.push([]);
      room = MAX_MESSAGE - HEADER;
    }
    room -= size;
    parts.at(-1)!.push(record);
  }
  return parts.map((answers, index) =>
    dnsQuery({ questions: index === 0 ? [question] : [], answers, truncated: index < parts.length - 1 }),
  );
}

function nameSize(name: string): number {
  return new TextEncoder().encode(name).length + 2;
}
