/**
 * Checks the lines of an audit log in order and finds the first one out of place. Verifying and resuming a log both
 * rely on it.
 *
 * Each line must be a canonical entry, signed by the audit key, with the next number and the hash of the entry before.
 * A log, and each of its segments, begins with a binding entry (`log-started`, `segment-started`): it names the audit
 * key and the device, so that the rest can be verified after everything before it was removed. No IO.
 */
import { type AuditEntry, type AuditHash, type AuditHead, type AuditVerifier, NO_ENTRY, readEntry } from './entry.ts';

/** Binding entries: Seq 0 of a log, and the first entry of each further segment. */
export const LOG_STARTED = 'log-started';
export const SEGMENT_STARTED = 'segment-started';
/** Event: from here on the device has other ids or another key. */
export const IDENTITY_CHANGED = 'identity-changed';

/** One file of a log, unparsed. Files come in the order of their names. */
export interface AuditFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/**
 * Why a log is broken. `malformed`: not an entry in canonical form; `bad-signature`: changed, or not written by this
 * device; `bad-hash`: does not contain the hash of the entry before; `missing-entries`: entries were removed, here or
 * before the first; `reordered`; `duplicated`: a number occurs twice; `wrong-key`: not the expected audit key, or a
 * second one in the log; `truncated`: the last line is torn, or the log ends before the expected entry;
 * `other-history`: the expected entry differs.
 */
export type AuditFault =
  | 'malformed'
  | 'bad-signature'
  | 'bad-hash'
  | 'missing-entries'
  | 'reordered'
  | 'duplicated'
  | 'wrong-key'
  | 'truncated'
  | 'other-history';

/** The first break in a log. */
export interface AuditBreak {
  readonly reason: AuditFault;
  /** Number the entry has, or should have if it cannot be parsed. */
  readonly seq: number;
  readonly file: string;
  /** Line in the file, from 1. */
  readonly line: number;
}

/** The device a log belongs to, as its latest binding entry says. */
export interface AuditBinding {
  readonly publicKey: string;
  readonly productId: string;
  readonly deviceId: string;
  /** Full hex. */
  readonly fingerprint: string;
}

/** A chain without a fault. */
export interface SoundChain {
  readonly entries: number;
  /** Seq of the first entry. */
  readonly first: number;
  readonly head: AuditHead;
  readonly binding: AuditBinding;
  /** Rotation removed everything before this Seq, as the last segment says. */
  readonly firstKept: number;
}

export interface ChainOptions {
  /** The audit key; default the one named by the first entry. */
  readonly publicKey?: string;
  /** Called for each entry in its place. */
  readonly onEntry?: (entry: AuditEntry, hash: string) => void;
  /** Which signatures to check, default all. The last one vouches for everything before it, through the hashes. */
  readonly signatures?: 'all' | 'last';
}

/** A line of a file. */
interface Line {
  readonly file: string;
  readonly number: number;
  readonly bytes: Uint8Array;
  /** The line feed is missing. */
  readonly torn: boolean;
  /** Nothing follows in any file. */
  readonly last: boolean;
}

type Crypto = AuditHash & AuditVerifier;

/** Checks the files of a log. @param files at least one of them not empty */
export function checkChain(files: readonly AuditFile[], crypto: Crypto, options: ChainOptions = {}): SoundChain | AuditBreak {
  return new Walk(linesOf(files), crypto, options).run();
}

class Walk {
  /** Lines not yet checked. */
  readonly #lines: Iterable<Line>;
  readonly #crypto: Crypto;
  readonly #options: ChainOptions;
  #key: string | undefined;
  #head: AuditHead | null = null;
  #binding: AuditBinding | null = null;
  #entries = 0;
  #first = 0;
  #firstKept = 0;

  constructor(lines: Iterable<Line>, crypto: Crypto, options: ChainOptions) {
    this.#lines = lines;
    this.#crypto = crypto;
    this.#options = options;
    this.#key = options.publicKey;
  }

  run(): SoundChain | AuditBreak {
    for (const line of this.#lines) {
      const read = readEntry(line.bytes);
      const reason = this.#step(line, read);
      if (reason !== undefined) return { reason, seq: read?.entry.Seq ?? this.#expected, file: line.file, line: line.number };
    }
    const [head, binding] = [this.#head, this.#binding];
    if (head === null || binding === null) return { reason: 'missing-entries', seq: 0, file: '', line: 1 };
    return { entries: this.#entries, first: this.#first, head, binding, firstKept: this.#firstKept };
  }

  get #expected(): number {
    return this.#head === null ? 0 : this.#head.seq + 1;
  }

  #step({ bytes, torn, last }: Line, read: ReturnType<typeof readEntry>): AuditFault | undefined {
    if (torn) return 'truncated';
    if (read === null) return 'malformed';
    const { entry, signed } = read;
    const binds = entry.Event === LOG_STARTED || entry.Event === SEGMENT_STARTED;
    if (binds) this.#key ??= String(entry.AuditKey);
    // Without a key, all that can be said is that the beginning is missing.
    if (this.#key === undefined) return this.#outOfPlace(entry.Seq);
    if (binds && entry.AuditKey !== this.#key) return 'wrong-key';
    const checked = this.#options.signatures !== 'last' || last;
    if (checked && !this.#crypto.verify(this.#key, signed, entry.Sig)) return 'bad-signature';
    const misplaced = this.#head === null ? this.#begin(entry) : this.#follow(entry, this.#head);
    if (misplaced !== undefined) return misplaced;
    if (binds || entry.Event === IDENTITY_CHANGED) this.#bind(entry);
    const hash = this.#crypto.hash(bytes);
    this.#head = { seq: entry.Seq, hash };
    this.#entries++;
    this.#options.onEntry?.(entry, hash);
    return undefined;
  }

  #begin({ Seq, Event, Prev }: AuditEntry): AuditFault | undefined {
    const first = Seq === 0 ? Event === LOG_STARTED : Event === SEGMENT_STARTED;
    if (!first) return Seq === 0 ? 'malformed' : this.#outOfPlace(Seq);
    if (Seq === 0 && Prev !== NO_ENTRY) return 'bad-hash';
    this.#first = Seq;
    return undefined;
  }

  #follow({ Seq, Prev }: AuditEntry, head: AuditHead): AuditFault | undefined {
    if (Seq !== head.seq + 1) return this.#outOfPlace(Seq);
    return Prev === head.hash ? undefined : 'bad-hash';
  }

  /** Later lines show whether the missing entry is gone or only misplaced. */
  #outOfPlace(seq: number): AuditFault {
    if (this.#head !== null && seq <= this.#head.seq) return seq < this.#first ? 'reordered' : 'duplicated';
    for (const { bytes } of this.#lines) {
      const later = readEntry(bytes);
      if (later !== null && later.entry.Seq < seq) return 'reordered';
    }
    return 'missing-entries';
  }

  #bind({ ProductId, DeviceId, DeviceFingerprint, FirstKept }: AuditEntry): void {
    this.#binding = {
      publicKey: this.#key ?? '',
      productId: String(ProductId),
      deviceId: String(DeviceId),
      fingerprint: String(DeviceFingerprint),
    };
    if (typeof FirstKept === 'number') this.#firstKept = FirstKept;
  }
}

/** Returns the lines of a file that parse as entries, whatever their signature. */
export function entriesOf(file: AuditFile): AuditEntry[] {
  const entries: AuditEntry[] = [];
  for (const { bytes } of linesOf([file])) {
    const read = readEntry(bytes);
    if (read !== null) entries.push(read.entry);
  }
  return entries;
}

const LINE_FEED = 10;

/** Yields one line at a time: a file of nothing but line feeds must not become as many objects. */
function* linesOf(files: readonly AuditFile[]): Generator<Line, void> {
  const written = files.filter(({ bytes }) => bytes.length > 0);
  for (const file of written) {
    const { name, bytes } = file;
    for (let start = 0, number = 1; start < bytes.length; number++) {
      const feed = bytes.indexOf(LINE_FEED, start);
      const end = feed < 0 ? bytes.length : feed;
      const last = file === written.at(-1) && end + 1 >= bytes.length;
      yield { file: name, number, bytes: bytes.subarray(start, end), torn: feed < 0, last };
      start = end + 1;
    }
  }
}

/**
 * Returns how many bytes of a segment a crash left whole: everything before a line without line feed, or before a line
 * with a zero byte. Some file systems leave zeros where data was being written when power failed. No entry contains a
 * zero byte.
 */
export function wholeLength(bytes: Uint8Array): number {
  const zero = bytes.indexOf(0);
  const before = zero < 0 ? bytes : bytes.subarray(0, zero);
  return before.lastIndexOf(LINE_FEED) + 1;
}
