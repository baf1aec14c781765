/**
 * Converts between the packets of `dns-packet`, which `multicast-dns` uses, and the messages of `protocol/discovery`.
 */

import { canonicalAddress } from '../../protocol/address.ts';
import type { DnsMessage, DnsQuestion, DnsRecord } from '../../protocol/discovery/index.ts';

/** As `dns-packet` decodes it, reduced to what discovery uses. */
export interface MdnsPacket {
  id?: number;
  type?: string;
  flags?: number;
  questions?: readonly { name: string; type: string; class?: string }[];
  answers?: readonly MdnsPacketRecord[];
  authorities?: readonly MdnsPacketRecord[];
  additionals?: readonly MdnsPacketRecord[];
}

interface MdnsPacketRecord {
  name: string;
  type: string;
  ttl?: number;
  flush?: boolean;
  data?: unknown;
}

/** Flags of the header (RFC 1035 §4.1.1): authoritative answer, truncation. */
const AUTHORITATIVE = 0x400;
const TRUNCATED = 0x200;

/** Class IN, and ANY, with the unicast-response bit, which `dns-packet` does not know. */
const UNICAST_CLASSES = ['UNKNOWN_32769', 'UNKNOWN_33023'];

/** Skips records of types that discovery does not use. */
export function fromPacket(packet: MdnsPacket): DnsMessage {
  return {
    id: packet.id ?? 0,
    response: packet.type === 'response',
    truncated: ((packet.flags ?? 0) & TRUNCATED) !== 0,
    questions: (packet.questions ?? []).map(fromQuestion),
    answers: (packet.answers ?? []).flatMap(fromRecord),
    authorities: (packet.authorities ?? []).flatMap(fromRecord),
    additionals: (packet.additionals ?? []).flatMap(fromRecord),
  };
}

export function toPacket(message: DnsMessage): MdnsPacket {
  return {
    id: message.id,
    type: message.response ? 'response' : 'query',
    flags: (message.response ? AUTHORITATIVE : 0) | (message.truncated ? TRUNCATED : 0),
    questions: message.questions.map(({ name, type }) => ({ name, type, class: 'IN' })),
    answers: message.answers.map(toRecord),
    authorities: message.authorities.map(toRecord),
    additionals: message.additionals.map(toRecord),
  };
}

function fromQuestion({ name, type, class: kind = 'IN' }: { name: string; type: string; class?: string }): DnsQuestion {
  return { name, type, unicast: UNICAST_CLASSES.includes(kind) };
}

function fromRecord({ name, type, ttl = 0, flush = false, data }: MdnsPacketRecord): DnsRecord[] {
  const common = { name, ttl, flush };
  if (type === 'A' || type === 'AAAA') {
    const address = canonicalAddress(String(data));
    return address === null ? [] : [{ ...common, type, data: address }];
  }
  if (type === 'PTR') return [{ ...common, type, data: String(data) }];
  if (type === 'TXT') return [{ ...common, type, data: data as Buffer[] }];
  if (type === 'SRV') return [{ ...common, type, data: data as Extract<DnsRecord, { type: 'SRV' }>['data'] }];
  if (type === 'NSEC') return [{ ...common, type, data: data as Extract<DnsRecord, { type: 'NSEC' }>['data'] }];
  return [];
}

function toRecord(record: DnsRecord): MdnsPacketRecord {
  if (record.type !== 'TXT') return record;
  return { ...record, data: record.data.map((item) => Buffer.from(item)) };
}
