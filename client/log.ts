/**
 * The log messages of a client, passed to the environment's log and to a callback of the application, both at the
 * same level. Each client has its own log.
 */

import { type Log, type LogLevel, logLevels, logOf, silentLog } from '../platform/environment.ts';
import { callback as callable, check, oneOf, orNull } from '../protocol/arguments.ts';

/** One message. It never contains keys, passwords or tokens. */
export interface LogMessage {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Receives each message at once; must not call back into the client. An error it throws goes to the environment's log.
 */
export type LogCallback = (message: LogMessage) => void;

export class ClientLog {
  /** The log that the client's parts write to. */
  readonly log: Log;
  readonly #under: Log;
  #level: LogLevel = 'info';
  #callback: LogCallback | null = null;

  constructor(under: Log) {
    this.#under = under;
    this.log = logOf((level, message, fields) => this.#write(level, message, fields));
  }

  /** @throws LocalError INVALID_ARGUMENT */
  setLevel(level: string): void {
    check('the log level', level, oneOf(logLevels));
    this.#level = level as LogLevel;
  }

  /** Null removes it. @throws LocalError INVALID_ARGUMENT */
  setCallback(callback: LogCallback | null): void {
    check('the log callback', callback, orNull(callable));
    this.#callback = callback;
  }

  #write(level: LogLevel, message: string, fields?: Record<string, unknown>): void {
    if (this.#callback === null && this.#under === silentLog) return;
    if (logLevels.indexOf(level) > logLevels.indexOf(this.#level)) return;
    this.#under[level](message, fields);
    try {
      this.#callback?.({ level, message, fields: fields ?? {} });
    } catch (error) {
      this.#under.error('the log callback failed', { error: String(error) });
    }
  }
}
