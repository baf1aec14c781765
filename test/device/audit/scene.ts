/** An audit log for tests: a directory of its own, a clock that is moved by hand, and entries without files. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type AuditFile, LOG_STARTED } from '../../../device/audit/chain.ts';
import { type AuditDraft, type AuditHead, sealEntry } from '../../../device/audit/entry.ts';
import { AuditLog, type AuditLogOptions } from '../../../device/audit/index.ts';
import { auditHash, auditSigner, createAuditKey } from '../../../device/audit/signing.ts';

export const identity = { productId: 'pr-1', deviceId: 'de-1', fingerprint: 'ab'.repeat(32) };
export const START = Date.UTC(2026, 0, 2, 3, 4, 5);

/** Time that stands still until it is moved; what was scheduled runs on the way. */
export class ManualClock {
  #now = 0;
  #calls: { at: number; run: () => void }[] = [];

  now = (): number => this.#now;
  wallTime = (): number => START + this.#now;
  schedule = (delay: number, run: () => void): (() => void) => {
    const call = { at: this.#now + delay, run };
    this.#calls.push(call);
    return () => {
      this.#calls = this.#calls.filter((each) => each !== call);
    };
  };

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#calls.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#calls = this.#calls.filter((each) => each !== next);
      this.#now = Math.max(this.#now, next.at);
      next.run();
    }
    this.#now = end;
  }
}

export interface Scene {
  readonly directory: string;
  readonly clock: ManualClock;
  open(options?: Partial<AuditLogOptions>): Promise<AuditLog>;
  /** Names of the segments. */
  segments(): string[];
  /** All lines of all segments. */
  lines(): string[];
  /** All entries, without frame but for the event. */
  events(): Record<string, unknown>[];
}

/** A fresh directory and clock before each test of the file. */
export function useScene(): () => Scene {
  let scene: Scene;
  beforeEach(() => {
    scene = newScene(mkdtempSync(join(tmpdir(), 'svc-audit-')));
  });
  afterEach(() => rmSync(scene.directory, { recursive: true, force: true }));
  return () => scene;
}

function newScene(directory: string): Scene {
  const clock = new ManualClock();
  const folder = join(directory, 'audit');
  const segments = () => readdirSync(folder).sort();
  const lines = () =>
    segments()
      .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
      .filter((line) => line !== '');
  const events = () =>
    lines().map((line) => {
      const { Seq: _seq, Time: _time, Prev: _prev, Sig: _sig, ...rest } = JSON.parse(line);
      return rest;
    });
  return { directory, clock, open: (options) => AuditLog.open(directory, { identity, clock, ...options }), segments, lines, events };
}

/** A chain in memory, with the key that signed it. */
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
