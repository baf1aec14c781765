/**
 * The log messages of a device, passed to the environment's log and to a callback of the application. Each device has
 * its own log.
 *
 * Until a level is set, the environment's log gets every message and filters by itself, and a callback gets `info` and
 * above. `debug` counts as trace.
 */

import { type Clock, type Log, type LogLevel, logOf } from '../platform/environment.ts';
import { stderrLog } from '../platform/node/index.ts';
import { callback as callable, check, oneOf, orNull } from '../protocol/arguments.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { LogTally } from '../runtime/log-tally.ts';

/** Least severe level logged. */
export type DeviceLogLevel = 'error' | 'warn' | 'info' | 'trace';

/**
 * Severity of a message, one bit each. A device that cannot continue emits the event PLATFORM_FAILURE; it does not log
 * FATAL.
 */
export const LogSeverity = { FATAL: 1, ERROR: 2, WARN: 4, INFO: 8, TRACE: 16 } as const;

/** One message. It never contains keys, passwords or tokens. */
export interface DeviceLogMessage {
  /** One of {@link LogSeverity}. */
  readonly severity: number;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Receives each message at once; must not call back into the device. An error it throws goes to the environment's log.
 */
export type DeviceLogCallback = (message: DeviceLogMessage) => void;

const LEVELS: readonly DeviceLogLevel[] = ['error', 'warn', 'info', 'trace'];

const SEVERITIES: Readonly<Record<LogLevel, number>> = {
  error: LogSeverity.ERROR,
  warn: LogSeverity.WARN,
  info: LogSeverity.INFO,
  debug: LogSeverity.TRACE,
  trace: LogSeverity.TRACE,
};

/**
 * Returns the name of a severity in lower case: `fatal`, `error`, `warn`, `info` or `trace`.
 * @throws LocalError INVALID_ARGUMENT
 */
export function logSeverityAsString(severity: number): string {
  const name = Object.entries(LogSeverity).find(([, bit]) => bit === severity)?.[0];
  if (name === undefined) throw new LocalError('INVALID_ARGUMENT', 'a log severity is 1, 2, 4, 8 or 16');
  return name.toLowerCase();
}

export class DeviceLog {
  /** The log that the device's parts write to. */
  readonly log: Log;
  /** For messages that strangers can cause: warnings and errors once a minute. Flushed when the device closes. */
  readonly tally: LogTally;
  readonly #under: Log;
  /** Greatest severity number logged; null until a level is set. */
  #most: number | null = null;
  #callback: DeviceLogCallback | null = null;

  constructor(under: Log, clock: Pick<Clock, 'schedule'>) {
    this.#under = under;
    this.log = logOf((level, message, fields) => this.#write(level, message, fields));
    this.tally = new LogTally(clock, this.log);
  }

  /** @throws LocalError INVALID_ARGUMENT */
  setLevel(level: string): void {
    check('the log level of a device', level, oneOf(LEVELS));
    this.#most = SEVERITIES[level as DeviceLogLevel];
  }

  /** Null removes it. @throws LocalError INVALID_ARGUMENT */
  setCallback(callback: DeviceLogCallback | null): void {
    check('the log callback', callback, orNull(callable));
    this.#callback = callback;
  }

  #write(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    const severity = SEVERITIES[level];
    if (severity <= (this.#most ?? LogSeverity.TRACE)) this.#under[level](message, fields);
    if (this.#callback === null || severity > (this.#most ?? LogSeverity.INFO)) return;
    try {
      this.#callback({ severity, message, fields: fields ?? {} });
    } catch (error) {
      this.#under.error('the log callback failed', { error: String(error) });
    }
  }
}

/** Returns a callback that writes lines to standard output: `2026-01-01T00:00:00.000Z warn text name=value …`. */
export function stdOutCallback(write: (line: string) => unknown = (line) => process.stdout.write(line)): DeviceLogCallback {
  const lines = stderrLog({ level: 'trace', write: (line) => void write(line) });
  return ({ severity, message, fields }) => lines[logSeverityAsString(severity) as DeviceLogLevel](message, { ...fields });
}
