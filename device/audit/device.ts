/** What a running device has written into its audit log: starts and stops, refusals by name of the user, and every change of access control. */
import { VERSION } from '../../protocol/records/index.ts';
import type { DeviceEvent } from '../events.ts';
import { type Caller, callerOf, type Denial } from '../iam/caller.ts';
import type { Iam } from '../iam/index.ts';
import type { PasswordFailure } from '../password/service.ts';
import { auditIam } from './iam.ts';
import type { AuditLog, AuditSubject } from './log.ts';

/** Events that say somebody may have tampered with device or base station. The others are everyday life. */
const TOLD: ReadonlySet<DeviceEvent> = new Set([
  'UNKNOWN_FINGERPRINT',
  'WRONG_PRODUCT_ID',
  'WRONG_DEVICE_ID',
  'CERTIFICATE_VALIDATION_FAILED',
  'PLATFORM_FAILURE',
]);

/** Never throws: what cannot be written is told by the log of the device, and counted in the audit log. */
export class DeviceAudit {
  readonly #log: AuditLog;
  #iam: Iam | null = null;
  #stopIam: (() => void) | null = null;
  #stopped = false;

  constructor(log: AuditLog) {
    this.#log = log;
  }

  /** Has the changes of access control written from now on, and refusals with the names of its users. */
  follow(iam: Iam): void {
    this.#iam = iam;
    this.#stopIam = auditIam(iam, this.#log);
  }

  /** Resolves when the start is on the disk, or cannot be. One that was stopped meanwhile is none. */
  async started({ appName, appVersion }: { readonly appName: string | null; readonly appVersion: string | null }): Promise<void> {
    if (!this.#stopped)
      await this.#append('device-started', { SvcVersion: VERSION, AppName: appName ?? undefined, AppVersion: appVersion ?? undefined });
  }

  /** The same for the stop; nothing is written afterwards. */
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
    if (TOLD.has(event)) this.#log.deviceEvent(event);
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
