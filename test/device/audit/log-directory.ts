/** An audit log for tests: a directory of its own, and a clock that the test advances. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach } from 'vitest';
import { AuditLog, type AuditLogOptions } from '../../../device/audit/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { identity, START } from './chain.ts';

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
    made = newLogDirectory(temporaryDirectory());
  });
  return () => made;
}

function newLogDirectory(directory: string): LogDirectory {
  const clock = new ManualClock(0, START);
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
