/**
 * The invitation of the first administrator. Only a verifier of its password is stored, so it is shown when it is
 * created: at the first start, and, as that may have failed or its output may be lost, at each start at a terminal
 * until a user is paired. Each new one voids the one before; one made by the owner with `svc device invite` stays.
 */
import { takesNoWrites } from '../../platform/node/index.ts';
import type { Output } from '../frame/output.ts';
import { type Access, ADMIN, hasUsers, invite, isAdministered } from './access.ts';
import type { OpenDevice } from './open.ts';

/** Returns the same device, with the password of a fresh invitation if one is due. */
export async function withInvitation(opened: OpenDevice, output: Pick<Output, 'isScreen'>): Promise<OpenDevice> {
  const { access, secrets, state } = opened;
  if (!output.isScreen || state.OwnerInvited === true || !isDue(access)) return opened;
  try {
    const { password } = await invite(access.iam, secrets, ADMIN);
    return { ...opened, access: { ...access, adminPassword: password } };
  } catch (error) {
    // The device runs with its current users; its output names the command for a later invitation.
    if (takesNoWrites(error)) return opened;
    throw error;
  }
}

function isDue({ iam, adminPassword }: Access): boolean {
  return adminPassword === undefined && iam.state.passwordInvitePairing && !hasUsers(iam) && !isAdministered(iam);
}
