/**
 * The chain on disk: where it resumes after a start, and how it moves from segment to segment.
 *
 * A start reads the newest segment, checks its chain and the signature of its last entry, and removes lines torn by a
 * crash, with an entry that records that. When a segment is full, the next one begins with a binding entry that names
 * the segments kept; only then are the oldest removed.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { type AuditBinding, checkChain, IDENTITY_CHANGED, LOG_STARTED, SEGMENT_STARTED, type SoundChain, wholeLength } from './chain.ts';
import { type AuditDetails, type AuditDraft, type AuditHead, type AuditSigner, checkEntry, MAX_LINE, sealEntry } from './entry.ts';
import { auditHash, auditVerifier } from './signing.ts';
import { AuditStore, openAuditKey } from './store.ts';

/** Identity of the device. */
export type AuditIdentity = Omit<AuditBinding, 'publicKey'>;

export interface JournalOptions {
  readonly identity: AuditIdentity;
  /** Bytes of a segment, at least 32 KiB; default 1 MiB. */
  readonly segmentBytes?: number;
  /** Bytes of all segments, at least two segments; default 16 MiB. One entry more while a segment begins. */
  readonly maxBytes?: number;
  /** Unix milliseconds, for the journal's own entries. */
  readonly time: () => number;
}

/** Where a log resumes. */
interface ResumePoint {
  /** Null: there is no entry. */
  readonly chain: SoundChain | null;
  /** Torn bytes at the end, to be removed. */
  readonly torn: Uint8Array;
}

const VERSION = 1;
/** Bytes per write, and the most that a crash can tear. */
const MAX_BATCH = 64 * 1024;
export const DEFAULT_SEGMENT = 1024 * 1024;
export const DEFAULT_SEGMENTS = 16;

/** Events that only the journal writes. */
export const JOURNAL_EVENTS: ReadonlySet<string> = new Set([LOG_STARTED, SEGMENT_STARTED, IDENTITY_CHANGED, 'log-repaired']);

export class Journal {
  readonly #identity: AuditDetails;
  readonly #segmentBytes: number;
  readonly #maxBytes: number;
  readonly #time: () => number;
  readonly #store: AuditStore;
  readonly #crypto: AuditSigner & typeof auditHash;
  #head: AuditHead | null = null;

  private constructor({ identity, segmentBytes, maxBytes, time }: JournalOptions, store: AuditStore, signer: AuditSigner) {
    this.#identity = { ProductId: identity.productId, DeviceId: identity.deviceId, DeviceFingerprint: identity.fingerprint };
    this.#segmentBytes = segmentBytes ?? DEFAULT_SEGMENT;
    this.#maxBytes = maxBytes ?? DEFAULT_SEGMENTS * this.#segmentBytes;
    this.#time = time;
    this.#store = store;
    this.#crypto = { ...signer, ...auditHash };
    if (!(this.#segmentBytes >= 4 * MAX_LINE && this.#maxBytes >= 2 * this.#segmentBytes)) {
      throw new LocalError('INVALID_ARGUMENT', `a segment has at least ${4 * MAX_LINE} bytes, and an audit log room for two segments`);
    }
  }

  /** @throws LocalError as `AuditLog.open` */
  static async open(directory: string, options: JournalOptions): Promise<Journal> {
    const signer = await openAuditKey(directory);
    const journal = new Journal(options, await AuditStore.open(directory), signer);
    await journal.#resume();
    return journal;
  }

  /** Public key of the log, hex. */
  get publicKey(): string {
    return this.#crypto.publicKey;
  }

  /** The last entry on disk. */
  get head(): AuditHead {
    return this.#head!;
  }

  /**
   * Writes as many entries as fit one write, at least one. Resolves with their number once they are on disk; when it
   * rejects, none of them is.
   * @throws LocalError FAILED; INVALID_STATE when another process has written to the log
   */
  async write(drafts: readonly AuditDraft[]): Promise<number> {
    if (this.#store.size + MAX_LINE > this.#segmentBytes) await this.#beginSegment();
    const room = Math.min(MAX_BATCH, this.#segmentBytes - this.#store.size);
    const lines = new Lines(this.#head, this.#crypto);
    for (const draft of drafts) {
      if (lines.size + MAX_LINE > room) break;
      lines.add(draft);
    }
    await this.#store.append(lines.bytes);
    this.#head = lines.head;
    return lines.count;
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  async #resume(): Promise<void> {
    const { chain, torn } = await resume(this.#store, this.publicKey);
    const first: AuditDraft[] = [];
    if (chain === null) await this.#beginSegment();
    else this.#head = chain.head;
    if (torn.length > 0) first.push(this.#draft('log-repaired', { Bytes: torn.length, Sha256: auditHash.hash(torn) }));
    if (chain !== null && !this.#isOf(chain)) first.push(this.#draft(IDENTITY_CHANGED, this.#identity));
    if (first.length > 0) await this.write(first);
    if (chain !== null) await this.#store.removeBefore(chain.firstKept);
  }

  #isOf({ binding }: SoundChain): boolean {
    const { ProductId, DeviceId, DeviceFingerprint } = this.#identity;
    return binding.productId === ProductId && binding.deviceId === DeviceId && binding.fingerprint === DeviceFingerprint;
  }

  /** Writes the binding entry first, then removes the segments that it no longer keeps. */
  async #beginSegment(): Promise<void> {
    const seq = this.#head === null ? 0 : this.#head.seq + 1;
    const firstKept = this.#firstKept() ?? seq;
    const binding = { Version: VERSION, ...this.#identity, AuditKey: this.publicKey };
    const lines = new Lines(this.#head, this.#crypto);
    lines.add(seq === 0 ? this.#draft(LOG_STARTED, binding) : this.#draft(SEGMENT_STARTED, { ...binding, FirstKept: firstKept }));
    await this.#store.begin(seq, lines.bytes);
    this.#head = lines.head;
    await this.#store.removeBefore(firstKept);
  }

  /** Seq of the oldest segment that fits beside a new one. */
  #firstKept(): number | undefined {
    let room = this.#maxBytes - this.#segmentBytes;
    let kept: number | undefined;
    for (const { first, size } of this.#store.segments.toReversed()) {
      room -= size;
      if (room < 0) break;
      kept = first;
    }
    return kept;
  }

  #draft(event: string, details: AuditDetails): AuditDraft {
    return { time: this.#time(), event, details: checkEntry(event, details) };
  }
}

/** Consecutive lines, before they are written. */
class Lines {
  readonly #lines: Uint8Array[] = [];
  readonly #crypto: AuditSigner & typeof auditHash;
  head: AuditHead | null;
  size = 0;

  constructor(head: AuditHead | null, crypto: AuditSigner & typeof auditHash) {
    this.head = head;
    this.#crypto = crypto;
  }

  get count(): number {
    return this.#lines.length;
  }

  /** Each line with its line feed. */
  get bytes(): Uint8Array {
    const bytes = new Uint8Array(this.size).fill(10);
    let offset = 0;
    for (const line of this.#lines) {
      bytes.set(line, offset);
      offset += line.length + 1;
    }
    return bytes;
  }

  add(draft: AuditDraft): void {
    const { line, head } = sealEntry(this.head, draft, this.#crypto);
    this.#lines.push(line);
    this.size += line.length + 1;
    this.head = head;
  }
}

/**
 * Finds where the log resumes, and removes a line torn by a crash.
 * @throws LocalError PARSE when it is broken otherwise; nothing is changed then
 */
async function resume(store: AuditStore, publicKey: string): Promise<ResumePoint> {
  const torn: Uint8Array[] = [];
  const cuts: number[] = [];
  let chain: SoundChain | null = null;
  for (const segment of store.segments.toReversed()) {
    const bytes = await store.read(segment);
    const whole = wholeLength(bytes);
    if (bytes.length - whole > MAX_BATCH) throw broken(segment.path, 'more is torn at its end than a crash can tear');
    if (whole > 0) chain = checkSegment(segment.path, bytes.subarray(0, whole), publicKey);
    if (whole < bytes.length) torn.unshift(bytes.subarray(whole));
    if (whole < bytes.length || whole === 0) cuts.push(whole);
    if (chain !== null) break;
  }
  for (const size of cuts) await store.cut(size);
  return { chain, torn: Buffer.concat(torn) };
}

/** The signature of the last entry vouches for those before it. */
function checkSegment(name: string, bytes: Uint8Array, publicKey: string): SoundChain {
  const chain = checkChain([{ name, bytes }], { ...auditHash, ...auditVerifier() }, { publicKey, signatures: 'last' });
  if ('reason' in chain) throw broken(name, `entry ${chain.seq} in line ${chain.line}: ${chain.reason}`);
  return chain;
}

function broken(path: string, why: string): LocalError {
  return new LocalError('PARSE', `${path} is broken (${why}): it is left as it is; move the log away to begin a new one`);
}
