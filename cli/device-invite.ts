/**
 * `svc device invite`: invites a user at the device itself, where no administrator is paired yet or all have lost their
 * keys. For the owner of the directory; an administrator uses `svc iam`. A device that runs is asked for the
 * invitation.
 */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { Device, nodeEnvironment, SvcError } from '../device/index.ts';
import { stderrLog } from '../platform/node/index.ts';
import { invitationOf, optionsToPair, placeOf } from './device-app/announce.ts';
import { DeviceData, type DeviceState } from './device-app/data.ts';
import { inviteBy, openDevice } from './device-app/open.ts';
import { askRunning, type Invitation, type InviteRequest } from './device-app/owner-socket.ts';
import { UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { rootsNote } from './frame/server-options.ts';
import { sharedOptions } from './frame/shared-options.ts';
import { share } from './pairing-share.ts';

interface InviteOptions {
  data: string;
  json?: boolean;
  role?: string;
}

/**
 * The command `svc device invite`. --data and --json are those of `svc device`, which takes them in any position: here
 * they are for --help.
 */
export function deviceInviteCommand(): Command {
  return new Command('invite')
    .description('at the device, running or not: invite a new or existing user by a fresh password, and print the pairing string')
    .argument('<user>', 'user name: a-z, 0-9, "_", "." and "-"')
    .option('--role <role>', 'role of the user from now on; a new user needs one to do anything')
    .option('--data <dir>', 'directory of the device')
    .option('--json', 'JSON on standard output')
    .action((user: string, _options: unknown, command: Command) => run(user, sharedOptions<InviteOptions>(command, ['data', 'json'])));
}

async function run(username: string, { data: directory, json, role }: InviteOptions): Promise<void> {
  const data = await DeviceData.open(resolve(directory));
  const invited = (await askRunning(data.directory, { username, role })) ?? (await inviteHere(data, { username, role }));
  // A device writes its state before it can invite.
  print(new Output(json === true), data.state!, invited);
}

/** Invites in the directory of a device that does not run. */
async function inviteHere(data: DeviceData, request: InviteRequest): Promise<Invitation> {
  const lock = await data.lock();
  try {
    await data.reread();
    const environment = nodeEnvironment({ log: stderrLog() });
    const opened = await openDevice(new Device({ environment }), data, {}, environment);
    try {
      return await inviteBy(opened, request).catch(explained);
    } finally {
      await opened.audit.close();
    }
  } finally {
    await lock.release();
  }
}

function print(output: Output, state: DeviceState, { user, password, fingerprint, roles, modes }: Invitation): void {
  const base = { productId: state.ProductId, deviceId: state.DeviceId, fingerprint, ...placeOf(state) };
  const { pairingString } = share(output, invitationOf(base, user, password), {});
  output.result({ user: user.username, role: user.role, invitation: pairingString }, [
    `${user.username} is invited${user.role === undefined ? ' and has no role' : ` as ${user.role}`}`,
    `pair with  svc pair -${optionsToPair(state)}`,
    ...rootsNote(state.ServerRootCerts).map((note) => `           ${note}`),
    '           (it asks for this line, which is shown only now and can be used once)',
    pairingString,
  ]);
  if (user.role === undefined)
    output.warn(`without a role everything is denied to ${user.username}: give it one with --role, of ${roles.join(', ')}`);
  if (!modes.includes('PasswordInvite'))
    output.warn(`pairing by invitation is off: start the device with --pairing ${[...modes, 'PasswordInvite'].join(',')}`);
}

/** Turns an error caused by the arguments into a usage error. */
function explained(error: unknown): never {
  if (error instanceof SvcError && ['INVALID_ARGUMENT', 'NOT_FOUND'].includes(error.code)) throw new UsageError(error.message);
  throw error;
}
