/** Entries without files, for tests and the fuzzer. */
import { type AuditFile, LOG_STARTED } from '../../../device/audit/chain.ts';
import { type AuditDraft, type AuditHead, sealEntry } from '../../../device/audit/entry.ts';
import { auditHash, auditSigner, createAuditKey } from '../../../device/audit/signing.ts';

export const identity = { productId: 'pr-1', deviceId: 'de-1', fingerprint: 'ab'.repeat(32) };
export const START = Date.UTC(2026, 0, 2, 3, 4, 5);

/** A chain in memory, and the key that signed it. */
export function makeChain(
  drafts: readonly Omit<AuditDraft, 'time'>[],
  pem = createAuditKey(),
): { lines: string[]; publicKey: string; hashes: string[] } {
  const crypto = { ...auditSigner(pem), ...auditHash };
  const binding = { Version: 1, ProductId: 'pr-1', DeviceId: 'de-1', DeviceFingerprint: identity.fingerprint, AuditKey: crypto.publicKey };
  let head: AuditHead | null = null;
  const [lines, hashes]: [string[], string[]] = [[], []];
  for (const draft of [{ event: LOG_STARTED, details: binding }, ...drafts]) {
    const sealed: ReturnType<typeof sealEntry> = sealEntry(head, { time: START, ...draft }, crypto);
    head = sealed.head;
    lines.push(new TextDecoder().decode(sealed.line));
    hashes.push(sealed.head.hash);
  }
  return { lines, publicKey: crypto.publicKey, hashes };
}

/** A file of whole lines. */
export function fileOf(lines: readonly string[], name = '000000000000.jsonl'): AuditFile {
  return { name, bytes: new TextEncoder().encode(lines.map((line) => `${line}\n`).join('')) };
}
