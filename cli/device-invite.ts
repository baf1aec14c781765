/**
 * `svc device invite`: invites a user at the device itself, where no administrator is paired yet or all have lost their
 * keys. For the owner of the directory, while the device is stopped; an administrator uses `svc iam`.
 */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { Device, nodeEnvironment, SvcError } from '../device/index.ts';
import { stderrLog } from '../transport/node/index.ts';
import { ADMIN, invite, pairingOf } from './device-app/access.ts';
import { invitationOf, optionsToPair, placeOf } from './device-app/announce.ts';
import { DeviceData } from './device-app/data.ts';
import { type OpenDevice, openDevice } from './device-app/open.ts';
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
    .description('while the device is stopped: invite a new or existing user by a fresh password, and print the pairing string')
    .argument('<user>', 'user name: a-z, 0-9, "_", "." and "-"')
    .option('--role <role>', 'role of the user from now on; a new user needs one to do anything')
    .option('--data <dir>', 'directory of the device')
    .option('--json', 'JSON on standard output')
    .action((user: string, _options: unknown, command: Command) => run(user, sharedOptions<InviteOptions>(command, ['data', 'json'])));
}

async function run(username: string, { data: directory, json, role }: InviteOptions): Promise<void> {
  const data = await DeviceData.open(resolve(directory));
  const lock = await data.lock();
  try {
    await data.reread();
    const environment = nodeEnvironment({ log: stderrLog() });
    const opened = await openDevice(new Device({ environment }), data, {}, environment);
    try {
      await print(new Output(json === true), opened, username, role);
      if (username === ADMIN) await data.update({ OwnerInvited: true });
    } finally {
      await opened.audit.close();
    }
  } finally {
    await lock.release();
  }
}

async function print(output: Output, { device, access, secrets, state }: OpenDevice, username: string, role?: string): Promise<void> {
  const { iam } = access;
  const { user, password } = await invite(iam, secrets, username, role).catch(explained);
  const base = { productId: state.ProductId, deviceId: state.DeviceId, fingerprint: device.deviceFingerprint, ...placeOf(state) };
  const { pairingString } = share(output, invitationOf(base, user, password), {});
  output.result({ user: user.username, role: user.role, invitation: pairingString }, [
    `${user.username} is invited${user.role === undefined ? ' and has no role' : ` as ${user.role}`}`,
    `pair with  svc pair -${optionsToPair(state)}`,
    ...rootsNote(state.ServerRootCerts).map((note) => `           ${note}`),
    '           (it asks for this line, which is shown only now and can be used once)',
    pairingString,
  ]);
  if (user.role === undefined)
    output.warn(`without a role everything is denied to ${username}: give it one with --role, of ${iam.roles.join(', ')}`);
  if (!iam.state.passwordInvitePairing)
    output.warn(`pairing by invitation is off: start the device with --pairing ${[...pairingOf(iam), 'PasswordInvite'].join(',')}`);
}

/** Turns an error caused by the arguments into a usage error. */
function explained(error: unknown): never {
  if (error instanceof SvcError && ['INVALID_ARGUMENT', 'NOT_FOUND'].includes(error.code)) throw new UsageError(error.message);
  throw error;
}
