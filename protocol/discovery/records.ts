/**
 * Messages and records of multicast DNS (RFC 6762, RFC 1035 §4) as objects, as far as discovery uses them. The IO layer
 * converts them to bytes.
 */

interface Common {
  readonly name: string;
  /** Seconds; 0 withdraws the record (RFC 6762 §10.1). */
  readonly ttl: number;
  /** The cache-flush bit: these are all records of that name and type (RFC 6762 §10.2). */
  readonly flush: boolean;
}

/** One record. The text of an address is canonical and without a zone; TXT has one entry per string. */
export type DnsRecord = Common &
  (
    | { readonly type: 'A' | 'AAAA' | 'PTR'; readonly data: string }
    | {
        readonly type: 'SRV';
        readonly data: { readonly priority: number; readonly weight: number; readonly port: number; readonly target: string };
      }
    | { readonly type: 'TXT'; readonly data: readonly Uint8Array[] }
    | { readonly type: 'NSEC'; readonly data: { readonly nextDomain: string; readonly rrtypes: readonly string[] } }
  );

/** One question. */
export interface DnsQuestion {
  readonly name: string;
  /** `PTR`, `SRV` …, `ANY`. */
  readonly type: string;
  /** The unicast-response bit, "QU" (RFC 6762 §5.4). */
  readonly unicast: boolean;
}

/** One message. It omits records of types that {@link DnsRecord} does not have. */
export interface DnsMessage {
  /** 0 except in legacy unicast queries and their answers (RFC 6762 §18.1). */
  readonly id: number;
  readonly response: boolean;
  /** The TC bit: more known answers follow (RFC 6762 §7.2). */
  readonly truncated: boolean;
  readonly questions: readonly DnsQuestion[];
  readonly answers: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
}

const EMPTY: DnsMessage = { id: 0, response: false, truncated: false, questions: [], answers: [], authorities: [], additionals: [] };

/** Returns a query; omitted parts are empty. */
export function dnsQuery(parts: Partial<DnsMessage>): DnsMessage {
  return { ...EMPTY, ...parts };
}

/** Returns a response; omitted parts are empty. */
export function dnsResponse(parts: Partial<DnsMessage>): DnsMessage {
  return { ...EMPTY, response: true, ...parts };
}

/** Returns whether two names are equal: ASCII letters are compared without case (RFC 6762 §16). */
export function sameName(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** Returns a key that is equal for records of the same name, type and data, whatever their times to live. */
export function recordKey(record: DnsRecord): string {
  return `${record.name.toLowerCase()} ${record.type} ${dataKey(record)}`;
}

function dataKey(record: DnsRecord): string {
  if (record.type === 'SRV') {
    const { priority, weight, port, target } = record.data;
    return `${priority} ${weight} ${port} ${target.toLowerCase()}`;
  }
  if (record.type === 'TXT') return record.data.map((item) => item.join(',')).join(';');
  if (record.type === 'NSEC') return record.data.rrtypes.join();
  return record.data.toLowerCase();
}
