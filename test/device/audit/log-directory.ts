/** An audit log for tests: a directory of its own, and a clock that the test advances. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { AuditLog, type AuditLogOptions } from '../../../device/audit/index.ts';
import { identity, START } from './chain.ts';

/** Time that stands still until it is advanced; scheduled work runs on the way. */
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

export interface LogDirectory {
  readonly directory: string;
  readonly clock: ManualClock;
  open(options?: Partial<AuditLogOptions>): Promise<AuditLog>;
  /** Names of the segments. */
  segments(): string[];
  /** All lines of all segments. */
  lines(): string[];
  /** All entries, without the frame except the event. */
  events(): Record<string, unknown>[];
}

/** A fresh directory and clock before each test of the file. */
export function useLogDirectory(): () => LogDirectory {
  let made: LogDirectory;
  beforeEach(() => {
    made = newLogDirectory(mkdtempSync(join(tmpdir(), 'svc-audit-')));
  });
  afterEach(() => rmSync(made.directory, { recursive: true, force: true }));
  return () => made;
}

function newLogDirectory(directory: string): LogDirectory {
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
