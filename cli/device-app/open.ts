/**
 * A device of `svc device` with its stored data: its identity, its users, and its audit log, which records every change
 * to them from here on.
 */
import { AuditLog, createIamSecrets, type Device, type Environment, type IamSecrets } from '../../device/index.ts';
import { type Access, ADMIN, type FirstAccess, invite, openAccess, pairingOf } from './access.ts';
import type { DeviceData, DeviceState } from './data.ts';
import { type IdentityOptions, identify } from './identity.ts';
import type { Invitation, InviteRequest } from './owner-socket.ts';

export interface OpenDevice {
  readonly device: Device;
  readonly data: DeviceData;
  readonly state: DeviceState;
  readonly secrets: IamSecrets;
  readonly access: Access;
  /** To be closed after the device. */
  readonly audit: AuditLog;
  readonly environment: Environment;
}

/**
 * @param device not started; its environment is the one given
 * @throws UsageError, CommandError, LocalError: one line that names the file
 */
export async function openDevice(
  device: Device,
  data: DeviceData,
  options: IdentityOptions & { readonly iam?: FirstAccess },
  environment: Environment,
): Promise<OpenDevice> {
  const { log, clock } = environment;
  const { state, privateKey } = await identify(device, data, options);
  const secrets = createIamSecrets(privateKey);
  const access = await openAccess(data.directory, { secrets, first: options.iam ?? 'production', log, now: clock.wallTime });
  const identity = { productId: state.ProductId, deviceId: state.DeviceId, fingerprint: device.deviceFingerprint };
  const audit = await AuditLog.open(data.directory, { identity, clock, log });
  device.setIam(access.iam);
  device.setAuditLog(audit);
  return { device, data, state, secrets, access, audit, environment };
}

/** Invites as the owner of the device's directory, whether the device runs or not. @throws as `invite` */
export async function inviteBy({ device, data, access, secrets }: OpenDevice, { username, role }: InviteRequest): Promise<Invitation> {
  const { iam } = access;
  const { user, password } = await invite(iam, secrets, username, role);
  if (username === ADMIN) await data.update({ OwnerInvited: true });
  const { sct, role: now } = user;
  return {
    user: { username, ...(now !== undefined && { role: now }), ...(sct !== undefined && { sct }) },
    password,
    fingerprint: device.deviceFingerprint,
    roles: iam.roles,
    modes: pairingOf(iam),
  };
}
