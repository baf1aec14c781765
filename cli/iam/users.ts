/** `svc iam users …`: the users of a device and their settings. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { SvcError, type UserRecord } from '../../client/node.ts';
import type { TargetOptions } from '../client/target.ts';
import { collect } from '../frame/arguments.ts';
import { CommandError, describe, UsageError } from '../frame/errors.ts';
import { Output } from '../frame/output.ts';
import { givenPassword, type PasswordOptions, withPassword } from '../frame/password.ts';
import { givenSecret } from '../frame/secret.ts';
import { table } from '../frame/table.ts';
import { type ForceOptions, forceOption, isAdministratorRole, keepAdministrator } from './only-administrator.ts';
import { type IamOpened, iamSubcommand, keyLines, printNames, userLines, withIam } from './shared.ts';

interface UserOptions extends TargetOptions, PasswordOptions, ForceOptions {
  role?: string;
  displayName?: string;
  oauthSubject?: string;
  /** The user's token; `sct` is the target's. */
  token?: string | undefined;
  clear?: Clearable[];
}

interface ListOptions extends TargetOptions {
  long?: boolean;
}

const clearable = ['display-name', 'password', 'oauth-subject'] as const;
type Clearable = (typeof clearable)[number];

/** `svc iam users list|show|create|set|rename|delete`. */
export function usersCommand(): Command {
  return new Command('users')
    .description('the users of a device')
    .addCommand(list())
    .addCommand(show())
    .addCommand(create())
    .addCommand(set())
    .addCommand(rename())
    .addCommand(remove());
}

function list(): Command {
  return iamSubcommand('list', 'list the names of all users, oldest first')
    .option('--long', 'with role, display name, and whether the base station lacks capacity for its token')
    .action((options: ListOptions) =>
      withIam(options, async (opened) => {
        const names = await opened.iam.listUsers();
        if (options.long) await printUsers(opened, names);
        else printNames(opened, names, 'no users');
      }),
    );
}

/** One user per line. A user deleted meanwhile is left out. */
async function printUsers({ iam, output }: IamOpened, names: readonly string[]): Promise<void> {
  const users: UserRecord[] = [];
  for (const name of names) {
    const user = await iam.getUser(name).catch((error: unknown) => {
      if (error instanceof SvcError && error.code === 'USER_DOES_NOT_EXIST') return null;
      throw error;
    });
    if (user !== null) users.push(user);
  }
  const rows = users.map(({ username, role, displayName, sctOmitted }) => [
    username,
    role ?? 'no role',
    displayName,
    sctOmitted ? 'local only: no capacity for its token' : undefined,
  ]);
  output.result(users, rows.length === 0 ? 'no users' : table(['username', 'role', 'display name', 'base station'], rows));
}

function show(): Command {
  return iamSubcommand('show', 'show a user')
    .argument('<username>')
    .action((username: string, options: TargetOptions) =>
      withIam(options, async ({ iam, output, device }) => {
        const user = await iam.getUser(username);
        output.result(user, userLines(user));
        if (user.fingerprints.length > 1) output.note(keyLines(user, { device, state: options.state }).at(-1)!);
      }),
    );
}

function create(): Command {
  const command = iamSubcommand('create', 'create a user; `svc iam invite` also prints the pairing string')
    .argument('<username>', 'a-z, 0-9, _, . and -')
    .option('--role <id>', 'its role; without one it is denied everything');
  return withPassword(command).action((username: string, options: UserOptions) =>
    withIam(options, async ({ iam, output }) => {
      const password = await givenPassword(options, output);
      const { role } = options;
      const user = await iam.createUser(username, { ...(password !== undefined && { password }), ...(role !== undefined && { role }) });
      output.result(user, `created ${username}`);
    }),
  );
}

function set(): Command {
  const command = iamSubcommand('set', 'change settings of a user')
    .argument('<username>')
    .option('--role <id>', 'its role')
    .option('--display-name <text>', 'its display name')
    .option('--token <token>', 'the server connect token of its clients; - reads it from standard input')
    .option('--oauth-subject <subject>', 'its subject at an OAuth provider')
    .addOption(new Option('--clear <setting>', `clear a setting: ${clearable.join(', ')}; repeatable`).argParser(collect(clearing)))
    .addOption(forceOption());
  return withPassword(command).action(async (username: string, options: UserOptions) => {
    if (options.token === '-' && options.passwordFile === '-') throw new UsageError('standard input can be read once: token or password');
    const output = new Output(options.json === true);
    const password = await givenPassword(options, output);
    const token = await givenSecret({ what: 'the token', option: '--token', value: options.token }, output);
    const changes = changesOf({ ...options, token }, password);
    await withIam(options, async (opened) => {
      await keepRole(opened, username, options);
      await apply(opened, username, changes);
      const changed = changes.map(([name]) => name);
      output.result({ username, changed }, `changed ${changed.join(', ')} of ${username}`);
    });
  });
}

/** A setting, and its new value: null clears it. */
type Change = readonly [name: string, value: string | null];

/** @throws UsageError where there is none, or two of one setting */
function changesOf({ role, displayName, token, oauthSubject, clear = [] }: UserOptions, password: string | undefined): Change[] {
  const given = { role, 'display-name': displayName, token, 'oauth-subject': oauthSubject, password };
  const changes = Object.entries(given).flatMap(([name, value]): Change[] => (value === undefined ? [] : [[name, value]]));
  if (changes.length + clear.length === 0) throw new UsageError('nothing to change: give a setting, or one to --clear');
  const twice = clear.find((name) => changes.some(([changed]) => changed === name));
  if (twice !== undefined) throw new UsageError(`${twice} is given and cleared`);
  return [...changes, ...clear.map((name): Change => [name, null])];
}

/** Applies the changes in order. @throws CommandError that names those made before a refusal */
async function apply({ iam }: IamOpened, username: string, changes: readonly Change[]): Promise<void> {
  const setters: Record<string, (value: string | null) => Promise<void>> = {
    role: (value) => iam.updateUserRole(username, value ?? ''),
    'display-name': (value) => iam.updateUserDisplayName(username, value),
    token: (value) => iam.updateUserSct(username, value ?? ''),
    'oauth-subject': (value) => iam.updateUserOauthSubject(username, value),
    password: (value) => iam.updateUserPassword(username, value),
  };
  const changed: string[] = [];
  for (const [name, value] of changes) {
    await setters[name]!(value).catch((error: unknown) => refused(error, name, changed));
    changed.push(name);
  }
}

/** Keeps the last administrator; called before anything is changed. */
async function keepRole(opened: IamOpened, username: string, options: UserOptions): Promise<void> {
  const { role } = options;
  if (role === undefined || (await isAdministratorRole(opened, username, role))) return;
  await keepAdministrator(opened, username, `given the role ${role}`, options);
}

/** Throws the error of a refusal. Earlier changes stay, so the message names them. */
function refused(error: unknown, name: string, changed: readonly string[]): never {
  if (!(error instanceof SvcError) || changed.length === 0) throw error;
  throw new CommandError(`${name}: ${describe(error)}; changed before that: ${changed.join(', ')}`);
}

function rename(): Command {
  return iamSubcommand('rename', 'give a user another name')
    .argument('<username>')
    .argument('<new-username>')
    .action((username: string, newUsername: string, options: TargetOptions) =>
      withIam(options, async ({ iam, output }) => {
        await iam.renameUser(username, newUsername);
        output.result({ username: newUsername, previous: username }, `${username} is now ${newUsername}`);
      }),
    );
}

function remove(): Command {
  return iamSubcommand('delete', 'delete a user: its clients are disconnected, and are no longer users of the device')
    .argument('<username>')
    .addOption(forceOption())
    .action((username: string, options: TargetOptions & ForceOptions) =>
      withIam(options, async (opened) => {
        const { iam, output } = opened;
        await keepAdministrator(opened, username, 'deleted', options);
        await iam.deleteUser(username);
        output.result({ deleted: username }, `deleted ${username}`);
      }),
    );
}

function clearing(text: string): Clearable {
  const found = clearable.find((name) => name === text);
  if (found === undefined) throw new InvalidArgumentError(`Expected one of ${clearable.join(', ')}.`);
  return found;
}
