/** `svc iam`: access control of a device, as far as the role of this client allows. */
import { Command } from 'commander';
import { friendlyNameCommand, meCommand, modesCommand, rolesCommand, settingsCommand } from './device.ts';
import { fingerprintsCommand } from './fingerprints.ts';
import { inviteCommand } from './invite.ts';
import { withTargets } from './shared.ts';
import { usersCommand } from './users.ts';

/** `svc iam` with its commands. */
export function iamCommand(): Command {
  const command = new Command('iam')
    .description('users, roles and pairing of a device')
    .addCommand(meCommand())
    .addCommand(modesCommand())
    .addCommand(inviteCommand())
    .addCommand(usersCommand())
    .addCommand(fingerprintsCommand())
    .addCommand(rolesCommand())
    .addCommand(settingsCommand())
    .addCommand(friendlyNameCommand());
  return withTargets(command);
}
