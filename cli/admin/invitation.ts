/** An invitation as shown to an operator: its join string, and the command to run on the board. */
import { userInfo } from 'node:os';
import { nodeEnvironment, stderrLog } from '../../platform/node/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import { encodeJoinString } from '../../protocol/records/index.ts';
import { type Administration, inviteDevice, type LastStart, type NewInvitationRequest } from '../../server/administration/index.ts';
import { joinAddress } from './join-address.ts';

/** The command for the board. It asks for the string, which must not be in the arguments of a process. */
export const JOIN_COMMAND = 'svc device --join -';

/** An invitation with its string. */
export interface HandedInvitation {
  readonly invitationId: string;
  readonly productId: string;
  readonly deviceId: string | null;
  /** ISO 8601 UTC. */
  readonly expires: string;
  readonly productMade: boolean;
  readonly server: string;
  readonly joinString: string;
  readonly command: string;
}

/** Creates an invitation. @throws as `inviteDevice` */
export async function handInvitation(
  administration: Administration,
  start: LastStart,
  request: NewInvitationRequest,
): Promise<{ invitation: HandedInvitation; addressNote: string | undefined }> {
  const { network } = nodeEnvironment({ log: stderrLog() });
  const address = await joinAddress(start, network);
  const { invitation, token, productMade } = await inviteDevice(administration, request);
  const { invitationId, productId, deviceId, expires } = invitation;
  const { server, serverFingerprint } = address;
  const joinString = encodeJoinString({
    server,
    productId,
    token,
    ...(serverFingerprint !== undefined && { serverFingerprint }),
    ...(deviceId !== null && { deviceId }),
  });
  const handed = { invitationId, productId, deviceId, expires, productMade, server, joinString, command: JOIN_COMMAND };
  return { invitation: handed, addressNote: address.note };
}

/** Creator of an invitation, for the list. */
export function localUser(): string {
  // A user without an entry in the list of users, as in a container, has a number.
  return orElse(() => userInfo().username, `user ${process.getuid?.() ?? '?'}`);
}
