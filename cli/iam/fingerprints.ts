/** `svc iam fingerprints …`: the keys of a user, each of one client. */
import { Command } from 'commander';
import type { TargetOptions } from '../client/target.ts';
import { fingerprint } from '../frame/arguments.ts';
import { table } from '../frame/table.ts';
import { type ForceOptions, forceOption, keepAdministrator } from './only-administrator.ts';
import { type IamOpened, iamSubcommand, withIam } from './shared.ts';

/** `svc iam fingerprints list|add|remove`. */
export function fingerprintsCommand(): Command {
  return new Command('fingerprints')
    .description('the keys of a user, by their fingerprints')
    .addCommand(list())
    .addCommand(add())
    .addCommand(remove());
}

function list(): Command {
  return iamSubcommand('list', 'list the fingerprints of a user')
    .argument('<username>')
    .action((username: string, options: TargetOptions) =>
      withIam(options, async ({ iam, output }) => {
        const { fingerprints } = await iam.getUser(username);
        const rows = fingerprints.map(({ fingerprint: hex, name }) => [hex, name]);
        output.result(
          fingerprints,
          rows.length === 0 ? 'no fingerprints: no client is this user yet' : table(['fingerprint', 'name'], rows),
        );
      }),
    );
}

function add(): Command {
  return iamSubcommand('add', 'let one more client act as this user')
    .argument('<username>')
    .argument('<fingerprint>', 'of the client, as `svc key show` prints it there', fingerprint)
    .option('--key-name <text>', 'name of the key')
    .action((username: string, hex: string, options: TargetOptions & { keyName?: string }) =>
      withIam(options, async ({ iam, output }) => {
        await iam.addUserFingerprint(username, hex, options.keyName);
        output.result({ username, added: hex }, `the client with the key ${hex} is now ${username}`);
      }),
    );
}

function remove(): Command {
  return iamSubcommand('remove', 'remove a key of a user')
    .argument('<username>')
    .argument('<fingerprint>', 'of the client', fingerprint)
    .addOption(forceOption())
    .action((username: string, hex: string, options: TargetOptions & ForceOptions) =>
      withIam(options, async (opened) => {
        const { iam, output } = opened;
        await keepKey(opened, username, hex, options);
        await iam.removeUserFingerprint(username, hex);
        output.result({ username, removed: hex }, `the client with the key ${hex} is no longer ${username}`);
      }),
    );
}

/** Refuses to remove the last key of the only administrator: without a key no client is this user. */
async function keepKey(opened: IamOpened, username: string, hex: string, options: ForceOptions): Promise<void> {
  if (options.force === true) return;
  const { fingerprints } = await opened.iam.getUser(username);
  if (fingerprints.length === 1 && fingerprints[0]?.fingerprint === hex)
    await keepAdministrator(opened, username, 'left without a key', options);
}
