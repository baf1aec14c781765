/**
 * An entry of the audit log and its line of text (docs/audit.md): its members, their order, and the bytes that are
 * signed and hashed.
 *
 *     {"Seq":7,"Time":"2026-01-02T03:04:05.678Z","Event":"paired",…,"Prev":"<64 hex>","Sig":"<128 hex>"}
 *
 * The line is canonical: exactly what JSON.stringify returns, so every entry has one form. The signature covers the
 * line without its Sig member, the hash covers the whole line; neither covers the line feed. No clock, file or key is
 * used here.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';

export type AuditScalar = string | number | boolean | undefined;

/** The members of an entry besides its frame; undefined ones are left out. */
export type AuditDetails = Readonly<Record<string, AuditScalar | Readonly<Record<string, AuditScalar>>>>;

export interface AuditEntry {
  /** From 0, without gaps. */
  readonly Seq: number;
  /** Wall time of the device, ISO 8601 UTC with milliseconds. It may jump; Seq gives the order. */
  readonly Time: string;
  readonly Event: string;
  /** Hash of the entry before, zeros in entry 0. */
  readonly Prev: string;
  readonly Sig: string;
  readonly [detail: string]: unknown;
}

/** Primitives, passed in to keep this folder free of platform code. All text is lowercase hex. */
export interface AuditHash {
  /** SHA-256. */
  hash(bytes: Uint8Array): string;
}
export interface AuditSigner {
  /** 32 bytes of Ed25519 public key (RFC 8032). */
  readonly publicKey: string;
  /** 64 bytes. */
  sign(bytes: Uint8Array): string;
}
export interface AuditVerifier {
  /** Returns whether the signature is valid; false also for a malformed key or signature. */
  verify(publicKey: string, bytes: Uint8Array, signature: string): boolean;
}

/** The last entry of a log. Remembered elsewhere, it shows when entries are missing at the end. */
export interface AuditHead {
  readonly seq: number;
  readonly hash: string;
}

/** Bytes of a line, line feed included. */
export const MAX_LINE = 8192;
/** Most bytes that an entry has besides its details: Seq, Time, Event, Prev and Sig. */
const FRAME_BYTES = 400;
/** Characters of a text, and of names and texts in a nested object. Longer ones are cut and end with "…". */
const MAX_TEXT = 128;
const MAX_NESTED_TEXT = 64;
/** Members of a nested object; further ones are left out. */
const MAX_NESTED = 4;

/** `Prev` of entry 0. */
export const NO_ENTRY = '0'.repeat(64);

const EVENT = /^[a-z][a-z0-9-]{0,31}$/;
const DETAIL = /^[A-Z][A-Za-z0-9]{0,31}$/;
const FRAME: ReadonlySet<string> = new Set(['Seq', 'Time', 'Event', 'Prev', 'Sig']);
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const SIGNED = /^(\{"Seq":.*),"Sig":"([0-9a-f]{128})"\}$/s;
const text = new TextEncoder();
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** An entry ready to be written: `checkEntry` made its details. */
export interface AuditDraft {
  /** Unix milliseconds. */
  readonly time: number;
  readonly event: string;
  readonly details: AuditDetails;
}

/**
 * Returns the details in the form to be written, with long texts and large nested objects cut.
 * @throws LocalError INVALID_ARGUMENT for an invalid name, a number that is not whole, or more than an entry holds
 */
export function checkEntry(event: string, details: AuditDetails): AuditDetails {
  if (!EVENT.test(event)) throw new LocalError('INVALID_ARGUMENT', 'an audit event is named by 1 to 32 of a-z, 0-9 and "-"');
  const wrong = Object.keys(details).find((name) => !DETAIL.test(name) || FRAME.has(name));
  if (wrong !== undefined) throw new LocalError('INVALID_ARGUMENT', `"${wrong.slice(0, 64)}" cannot be a member of an audit entry`);
  const entries = Object.entries(details).map(([name, value]) => [name, boundedValue(value)] as const);
  const bounded = Object.fromEntries(entries);
  if (text.encode(JSON.stringify(bounded)).length > MAX_LINE - FRAME_BYTES) {
    throw new LocalError('INVALID_ARGUMENT', `an audit entry has at most ${MAX_LINE} bytes`);
  }
  return bounded;
}

/** Returns the line that follows `head`, without line feed, and the new head. */
export function sealEntry(
  head: AuditHead | null,
  { time, event, details }: AuditDraft,
  crypto: AuditHash & AuditSigner,
): { readonly line: Uint8Array; readonly head: AuditHead } {
  const seq = head === null ? 0 : head.seq + 1;
  const frame = { Seq: seq, Time: new Date(time).toISOString(), Event: event };
  const body = JSON.stringify({ ...frame, ...details, Prev: head?.hash ?? NO_ENTRY });
  const line = text.encode(`${body.slice(0, -1)},"Sig":"${crypto.sign(text.encode(body))}"}`);
  return { line, head: { seq, hash: crypto.hash(line) } };
}

/**
 * Parses a line without its line feed; null unless it is an entry in canonical form. Does not check signature or chain.
 */
export function readEntry(bytes: Uint8Array): { readonly entry: AuditEntry; readonly signed: Uint8Array } | null {
  const line = bytes.length < MAX_LINE ? orElse(() => utf8.decode(bytes), '') : '';
  const [, body, signature] = SIGNED.exec(line) ?? [];
  if (body === undefined) return null;
  const entry = orElse(() => JSON.parse(line) as AuditEntry, null);
  if (entry === null || entry.Sig !== signature || JSON.stringify(entry) !== line) return null;
  const names = Object.keys(entry);
  const framed = [...names.slice(0, 3), ...names.slice(-2)].join() === 'Seq,Time,Event,Prev,Sig';
  const sound = Number.isSafeInteger(entry.Seq) && entry.Seq >= 0 && TIME.test(entry.Time) && EVENT.test(entry.Event);
  return framed && sound && /^[0-9a-f]{64}$/.test(entry.Prev) ? { entry, signed: text.encode(`${body}}`) } : null;
}

function boundedValue(value: AuditDetails[string]): AuditDetails[string] {
  if (typeof value !== 'object') return scalar(value, MAX_TEXT);
  const members = Object.entries(value).slice(0, MAX_NESTED);
  return Object.fromEntries(members.map(([name, each]) => [cut(name, MAX_NESTED_TEXT), scalar(each, MAX_NESTED_TEXT)]));
}

function scalar(value: AuditScalar, longest: number): AuditScalar {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new LocalError('INVALID_ARGUMENT', 'a number of an audit entry must be whole');
  }
  return typeof value === 'string' ? cut(value, longest) : value;
}

/** Counts code points, so that no character is cut in two. */
function cut(value: string, longest: number): string {
  if (value.length <= longest) return value;
  const characters = Array.from(value.slice(0, 2 * longest));
  return characters.length <= longest && characters.join('') === value ? value : `${characters.slice(0, longest - 1).join('')}…`;
}
