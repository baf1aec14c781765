/**
 * `svc admin device invite …`: invitations, each of which lets one device join by itself. The join string is shown
 * once.
 */
import { Command } from 'commander';
import {
  InvitationLifetime,
  type InvitationRecord,
  invitations,
  readLastStart,
  revokeInvitation,
} from '../../server/administration/index.ts';
import { id } from '../frame/arguments.ts';
import { duration, minuteOf } from '../frame/duration.ts';
import { CommandError } from '../frame/errors.ts';
import { sharedOptions } from '../frame/shared-options.ts';
import { dataOption } from '../frame/shell-word.ts';
import { table } from '../frame/table.ts';
import { type HandedInvitation, handInvitation, JOIN_COMMAND, localUser } from './invitation.ts';
import { type AdminOptions, administer, adminSubcommand } from './shared.ts';

/** Options that `invite` shares with the commands below it. */
const SHARED = ['data', 'json'];

interface InviteOptions extends AdminOptions {
  deviceId?: string;
  expires?: number;
}

/**
 * `svc admin device invite [product]`, `svc admin device invite list|revoke`; --data and --json are those of `invite`.
 */
export function adminDeviceInvite(): Command {
  const { MIN, MAX } = InvitationLifetime;
  return adminSubcommand('invite', 'let one device join by itself: prints the join string for it, once')
    .argument('[product]', 'product id, created if missing; not needed while there is only one', id)
    .option('--device-id <id>', 'its device id; by default chosen by the device or generated', id)
    .option('--expires <time>', 'how long it is valid, 1m to 30d (default: 24h)', duration(MIN, MAX, 'a time from 1m to 30d'))
    .option('--org <id>', 'organization of a new product; not needed while there is only one', id)
    .action(invite)
    .addCommand(list())
    .addCommand(revoke());
}

async function invite(productId: string | undefined, { deviceId, expires: lifetime, ...options }: InviteOptions): Promise<void> {
  const start = await readLastStart(options.data);
  if (start === undefined)
    throw new CommandError(
      `the base station was never started: start it once with svc basestation${dataOption('basestation', options.data)}`,
    );
  await administer(options, async (administration, output) => {
    const request = { productId, deviceId, lifetime, organizationId: options.org, maker: localUser() };
    const { invitation, addressNote } = await handInvitation(administration, start, request);
    output.result(invitation, invitation.joinString);
    for (const note of [...notesOf(invitation), ...(addressNote === undefined ? [] : [addressNote])]) output.note(note);
  });
}

function notesOf({ invitationId, productId, deviceId, expires, productMade }: HandedInvitation): string[] {
  const device = deviceId === null ? `for one device of ${productId}` : `for device ${deviceId} of ${productId}`;
  return [
    ...(productMade ? [`product ${productId} was missing and has been created`] : []),
    `${device}, until ${minuteOf(expires)} (invitation ${invitationId}); the first device that shows it uses it up`,
    `on the board run  ${JOIN_COMMAND}  and paste it`,
  ];
}

function list(): Command {
  return new Command('list')
    .description('list the invitations: which are open, and which key has used which, and from which address; used ones for 30 days')
    .action((_options: unknown, command: Command) =>
      administer(sharedOptions(command, SHARED), async (administration, output) => {
        const all = await invitations(administration);
        const headings = ['id', 'product', 'device', 'expires', 'state', 'used', 'from', 'made by', 'key'];
        output.result(all, all.length === 0 ? 'no invitations' : table(headings, all.map(cells)));
      }),
    );
}

function revoke(): Command {
  return new Command('revoke')
    .description('revoke an open invitation')
    .argument('<id>', 'its id as listed, or the first 6 or more digits of it')
    .action((invitationId: string, _options: unknown, command: Command) =>
      administer(sharedOptions(command, SHARED), async (administration, output) => {
        const revoked = await revokeInvitation(administration, invitationId);
        output.result({ revoked }, `revoked ${revoked}`);
      }),
    );
}

function cells({ invitationId, productId, deviceId, expires, revoked, use, maker }: InvitationRecord): (string | undefined)[] {
  const state = use !== null ? 'used' : revoked ? 'revoked' : 'open';
  const device = use?.deviceId ?? deviceId ?? 'any';
  return [
    invitationId,
    productId,
    device,
    minuteOf(expires),
    state,
    use === null ? '' : minuteOf(use.time),
    use?.address,
    maker,
    use?.fingerprint,
  ];
}
