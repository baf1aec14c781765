/**
 * Records a running device in its audit log: starts and stops, refusals with the user's name, and every change of
 * access control.
 */
import { VERSION } from '../../protocol/records/index.ts';
import type { DeviceEvent } from '../events.ts';
import { type Caller, callerOf, type Denial } from '../iam/caller.ts';
import type { Iam } from '../iam/index.ts';
import type { PasswordFailure } from '../password/service.ts';
import { auditIam } from './iam.ts';
import type { AuditLog, AuditSubject } from './log.ts';

/** Events that hint at tampering with the device or base station. The others are routine. */
const RECORDED: ReadonlySet<DeviceEvent> = new Set([
  'UNKNOWN_FINGERPRINT',
  'WRONG_PRODUCT_ID',
  'WRONG_DEVICE_ID',
  'CERTIFICATE_VALIDATION_FAILED',
  'PLATFORM_FAILURE',
]);

/**
 * Records events of a device. Never throws: the device log reports entries that cannot be written, and the audit log
 * counts them.
 */
export class DeviceAudit {
  readonly #log: AuditLog;
  #iam: Iam | null = null;
  #stopIam: (() => void) | null = null;
  #stopped = false;

  constructor(log: AuditLog) {
    this.#log = log;
  }

  /** Records all further changes of access control, and the names of its users in refusals. */
  follow(iam: Iam): void {
    this.#iam = iam;
    this.#stopIam = auditIam(iam, this.#log);
  }

  /** Resolves when the start is on disk, or cannot be written. Records nothing if the device was stopped meanwhile. */
  async started({ appName, appVersion }: { readonly appName: string | null; readonly appVersion: string | null }): Promise<void> {
    if (!this.#stopped)
      await this.#append('device-started', { SvcVersion: VERSION, AppName: appName ?? undefined, AppVersion: appVersion ?? undefined });
  }

  /** Records the stop likewise; nothing is written afterwards. */
  async stopped(): Promise<void> {
    this.#stopped = true;
    this.#stopIam?.();
    await this.#append('device-stopped');
  }

  denied({ caller, action, attributes }: Denial): void {
    this.#log.denied(this.#subject(caller), action, attributes);
  }

  passwordFailed({ connection, username, reason }: PasswordFailure): void {
    const known = username === '' || this.#iam?.user(username) !== undefined;
    this.#log.passwordFailed(this.#subject(callerOf(connection)), { ...(known && { username }), reason });
  }

  deviceEvent(event: DeviceEvent): void {
    if (RECORDED.has(event)) this.#log.deviceEvent(event);
  }

  #subject(caller: Caller): AuditSubject {
    const { fingerprint, isLocal } = caller;
    const username = this.#iam?.resolveCaller(caller)?.username;
    return { fingerprint, isLocal, ...(username !== undefined && { username }) };
  }

  async #append(...entry: Parameters<AuditLog['append']>): Promise<void> {
    await this.#log.append(...entry).catch(() => {});
  }
}
