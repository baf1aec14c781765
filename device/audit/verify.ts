/**
 * The verdict on a whole audit log: its chain, whether it begins where rotation says, and whether it matches a
 * remembered entry. No IO.
 */
import { type AuditBinding, type AuditBreak, type AuditFault, type AuditFile, type ChainOptions, checkChain } from './chain.ts';
import type { AuditEntry, AuditHash, AuditHead, AuditVerifier } from './entry.ts';

export interface VerifyOptions {
  /**
   * Public key of the audit log, 64 hex digits, from a second source. Without it the verdict says only that the log is
   * consistent, not who made it.
   */
  readonly publicKey?: string;
  /** An entry that the log had once (`svc device audit head`). Only this reveals a cut at the end. */
  readonly expect?: AuditHead;
}

export type AuditVerdict =
  | ({
      readonly ok: true;
      readonly entries: number;
      /** Seq of the first entry kept. */
      readonly first: number;
      readonly head: AuditHead;
    } & AuditBinding)
  /** `message` is one line for a person. */
  | ({ readonly ok: false; readonly message: string } & AuditBreak);

const TEXTS: Readonly<Record<AuditFault, string>> = {
  malformed: 'is not an entry in canonical form',
  'bad-signature': 'was changed, or not signed by this audit key',
  'bad-hash': 'does not have the hash of the entry before it',
  'missing-entries': 'does not follow: entries before it are missing',
  reordered: 'does not stand in its place',
  duplicated: 'has a number that was there before',
  'wrong-key': 'names another audit key',
  truncated: 'is cut off',
  'other-history': 'is not the one that is remembered: this is another history',
};

/** Judges the files of a log, in the order of their names. Never throws for their content. */
export function verifyEntries(files: readonly AuditFile[], crypto: AuditHash & AuditVerifier, options: VerifyOptions = {}): AuditVerdict {
  const { publicKey, expect } = options;
  let remembered: string | undefined;
  const onEntry = ({ Seq, Prev }: AuditEntry, hash: string): void => {
    if (Seq === expect?.seq) remembered = hash;
    else if (Seq - 1 === expect?.seq) remembered ??= Prev;
  };
  const chainOptions: ChainOptions = publicKey === undefined ? { onEntry } : { publicKey, onEntry };
  // The last signature covers the hash of everything before it, so it vouches for all. When something is wrong, all
  // signatures are checked to find out what.
  const quick = checkChain(files, crypto, { ...chainOptions, signatures: 'last' });
  const chain = 'reason' in quick ? checkChain(files, crypto, chainOptions) : quick;
  if ('reason' in chain) return broken(chain);
  const { entries, first, head, binding, firstKept } = chain;
  const [firstFile, lastFile] = [files[0]?.name ?? '', files.at(-1)?.name ?? ''];
  if (first > firstKept) return broken({ reason: 'missing-entries', seq: first, file: firstFile, line: 1 });
  if (expect !== undefined && remembered !== expect.hash) {
    const { seq } = expect;
    if (seq > head.seq) return broken({ reason: 'truncated', seq, file: lastFile, line: 0 }, `the log ends with entry ${head.seq}`);
    if (remembered !== undefined) return broken({ reason: 'other-history', seq, file: lastFile, line: 0 });
    return broken(
      { reason: 'missing-entries', seq, file: firstFile, line: 0 },
      `the log begins with entry ${first}: nothing to compare with`,
    );
  }
  return { ok: true, entries, first, head, ...binding };
}

/** @param line 0: no particular line */
function broken(fault: AuditBreak, detail?: string): AuditVerdict {
  const { reason, seq, file, line } = fault;
  const place = line === 0 || file === '' ? '' : ` (${file}:${line})`;
  return { ok: false, ...fault, message: `entry ${seq}${place} ${TEXTS[reason]}${detail === undefined ? '' : `; ${detail}`}: ${reason}` };
}
