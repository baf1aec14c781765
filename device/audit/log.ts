/**
 * The audit log of a running device: queues entries and writes them (docs/audit.md).
 *
 * Theory of operation. Entries wait in one queue, in order of arrival; each waiting caller is answered when its entry
 * is on disk, and entries that wait together share a write. No caller waits for refusals: they are rate-limited, and
 * written within a second. When a write fails, all queued entries are lost, their callers get the error, and the next
 * write begins with an entry that says how many were lost.
 *
 * The format of an entry (`entry.ts`), the validity of a chain (`chain.ts`, `verify.ts`) and the limit on refusals
 * (`limiter.ts`) are pure. `journal.ts` keeps the chain on disk across starts and segments, and only `store.ts` touches
 * files. `Iam.record` makes a change wait for its entries.
 */

import { aLog, type Cancel, type Clock, type Log, silentLog } from '../../platform/environment.ts';
import { check, checkOptions, type Kind, nonEmptyText, object, text, whole, withMethods } from '../../protocol/arguments.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { type AuditDetails, type AuditDraft, type AuditHead, checkEntry } from './entry.ts';
import { type AuditIdentity, JOURNAL_EVENTS, Journal } from './journal.ts';
import { type CallerClass, RefusalLimiter } from './limiter.ts';

export interface AuditLogOptions {
  /** Identity of the device. */
  readonly identity: AuditIdentity;
  /** `environment.clock` of the device. */
  readonly clock: Pick<Clock, 'now' | 'wallTime' | 'schedule'>;
  readonly log?: Log;
  /** Bytes of a segment, at least 32 KiB; default 1 MiB. */
  readonly segmentBytes?: number;
  /** Bytes of all segments, at least two segments; default 16 segments. One entry more while a segment begins. */
  readonly maxBytes?: number;
}

const IDENTITY: Record<keyof AuditIdentity, Kind> = { productId: text, deviceId: text, fingerprint: text };
const KINDS: Record<keyof AuditLogOptions, Kind> = {
  identity: object,
  clock: withMethods('now', 'wallTime', 'schedule'),
  log: aLog,
  segmentBytes: whole(1),
  maxBytes: whole(1),
};

/** The refused caller, as far as it is known. */
export interface AuditSubject {
  /** Full hex fingerprint of the client's key. */
  readonly fingerprint: string;
  readonly isLocal: boolean;
  /** The user it acts as. */
  readonly username?: string;
}

/** A rejected password. */
export interface FailedPassword {
  /**
   * The user whose password was tried, '' for open pairing. Leave out a name the device does not know: people type
   * passwords into the wrong field.
   */
  readonly username?: string;
  readonly reason: 'wrong' | 'throttled';
}

interface QueuedEntry extends AuditDraft {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Longest time from a refusal to its write, ms. */
const LAZY = 1000;
/** Time from the first refusal that is only counted to the entry with the count, ms. */
const SUMMARY = 3_600_000;
const LOST = 'entries-lost';
const SUPPRESSED = 'suppressed';

export class AuditLog {
  readonly #clock: AuditLogOptions['clock'];
  readonly #log: Log;
  readonly #journal: Journal;
  readonly #limiter = new RefusalLimiter();
  /** In order; all of it is written while `#work` runs. */
  #queue: QueuedEntry[] = [];
  /** In order, after the queue: joins the queue when a caller waits or the time has passed. */
  #lazy: QueuedEntry[] = [];
  #lazyTimer: Cancel | null = null;
  #summaryTimer: Cancel | null = null;
  #lost = 0;
  /** Settles when nothing waits any longer. */
  #work: Promise<void> | null = null;
  #open = true;

  private constructor({ clock, log = silentLog }: AuditLogOptions, journal: Journal) {
    this.#clock = clock;
    this.#log = log;
    this.#journal = journal;
  }

  /**
   * Resumes the log in a device's directory, or begins one and creates its key. Removes a line torn by a crash at the
   * end, with an entry that records that. Only one process may have a log open.
   * @throws LocalError PARSE when log or key are broken, NOT_FOUND when the key is missing: nothing is changed then;
   *   FAILED; INVALID_ARGUMENT
   */
  static async open(directory: string, options: AuditLogOptions): Promise<AuditLog> {
    check('the directory', directory, nonEmptyText);
    checkOptions('an audit log', options, KINDS, ['identity', 'clock']);
    checkOptions('the identity of an audit log', options.identity, IDENTITY, ['productId', 'deviceId', 'fingerprint']);
    const time = () => options.clock.wallTime();
    return new AuditLog(options, await Journal.open(directory, { ...options, time }));
  }

  /** Public key of the log, 64 hex digits. A verifier should get it from a second source. */
  get publicKey(): string {
    return this.#journal.publicKey;
  }

  /** The last entry on disk. Remembered elsewhere, it shows whether the log was cut. */
  get head(): AuditHead {
    return this.#journal.head;
  }

  /**
   * Adds an entry; resolves when it is on disk.
   * @param event 1 to 32 of a-z, 0-9 and `-`
   * @param details members begin with a capital letter; long texts are cut. Never a secret
   * @throws LocalError INVALID_ARGUMENT; FAILED when it cannot be written; INVALID_STATE after close
   */
  async append(event: string, details: AuditDetails = {}): Promise<void> {
    check('the event', event, text);
    check('the details', details, object);
    if (JOURNAL_EVENTS.has(event) || event === LOST || event === SUPPRESSED) {
      throw new LocalError('INVALID_ARGUMENT', `only the audit log itself writes "${event}"`);
    }
    if (!this.#open) throw new LocalError('INVALID_STATE', 'the audit log is closed');
    const draft = this.#draft(event, details);
    await new Promise<void>((resolve, reject) => {
      this.#lazy.push({ ...draft, resolve, reject });
      this.#takeLazy();
    });
  }

  /** Records a denied action. Written soon, rate-limited; never throws. */
  denied(subject: AuditSubject, action: string, attributes: Readonly<Record<string, string>> = {}): void {
    this.#refused('denied', subject, { Action: action, Attributes: attributes });
  }

  /** Records a wrong password, or one too many. Written soon, rate-limited; never throws. */
  passwordFailed(subject: AuditSubject, { username, reason }: FailedPassword): void {
    this.#refused('password-failed', subject, { Username: username, Reason: reason });
  }

  /** Records a device event. Written soon, rate-limited; never throws. @param name from a small fixed set */
  deviceEvent(name: string): void {
    this.#limited('device-event', 'device', { DeviceEvent: name });
  }

  /** Resolves when everything so far, refusals included, is on disk or lost. */
  async flush(): Promise<void> {
    this.#takeLazy();
    await this.#work;
  }

  /** Writes the queue and closes the files. Safe to call again. */
  async close(): Promise<void> {
    if (!this.#open) return;
    this.#open = false;
    this.#summarize();
    await this.flush();
    await this.#journal.close();
  }

  #refused(event: string, subject: AuditSubject, details: AuditDetails): void {
    this.#limited(event, classOf(subject), { ...details, By: subjectDetails(subject) });
  }

  #limited(event: string, callerClass: CallerClass, details: AuditDetails): void {
    if (!this.#open) return;
    if (this.#limiter.admit(event, callerClass, this.#clock.now())) this.#note(event, details);
    else this.#summaryTimer ??= this.#clock.schedule(SUMMARY, () => this.#summarize());
  }

  #summarize(): void {
    this.#summaryTimer?.();
    this.#summaryTimer = null;
    for (const { event, callerClass, count } of this.#limiter.takeSuppressed()) {
      this.#note(SUPPRESSED, { Of: event, Class: callerClass, Count: count });
    }
  }

  /** Adds an entry that no caller waits for. */
  #note(event: string, details: AuditDetails): void {
    this.#lazy.push({ ...this.#draft(event, details), resolve() {}, reject() {} });
    this.#lazyTimer ??= this.#clock.schedule(LAZY, () => this.#takeLazy());
  }

  #takeLazy(): void {
    this.#lazyTimer?.();
    this.#lazyTimer = null;
    this.#queue.push(...this.#lazy);
    this.#lazy = [];
    if (this.#queue.length > 0) this.#work ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) await this.#writeSome();
    this.#work = null;
  }

  async #writeSome(): Promise<void> {
    const lost = this.#lost > 0 ? [this.#draft(LOST, { Count: this.#lost })] : [];
    try {
      const written = await this.#journal.write([...lost, ...this.#queue]);
      this.#lost = 0;
      for (const { resolve } of this.#queue.splice(0, written - lost.length)) resolve();
    } catch (error) {
      const failed = this.#queue.splice(0);
      this.#lost += failed.length;
      this.#log.error('the audit log could not be written', { entries: failed.length, error: String(error) });
      for (const { reject } of failed) reject(error);
    }
  }

  #draft(event: string, details: AuditDetails): AuditDraft {
    return { time: this.#clock.wallTime(), event, details: checkEntry(event, details) };
  }
}

/** Members that name the acting or refused caller in an entry. */
export function subjectDetails({ username, fingerprint, isLocal }: AuditSubject): Readonly<Record<string, string | boolean | undefined>> {
  return { Username: username, Fingerprint: fingerprint, Local: isLocal };
}

function classOf({ username, isLocal }: AuditSubject): CallerClass {
  if (username !== undefined) return 'paired';
  return isLocal ? 'local' : 'remote';
}
