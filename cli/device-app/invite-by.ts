/** An invitation by the owner of the device's directory, whether the device runs or not. */
import { ADMIN, invite, pairingOf } from './access.ts';
import type { OpenDevice } from './open.ts';
import type { Invitation, InviteRequest } from './owner-socket.ts';

/** @throws as `invite` */
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
