/**
 * `svc pair`: makes this client a user of a device, in the way the device offers, and remembers the device with the user's token.
 *
 * What is missing is asked for on a terminal only. By a password the device is verified as well, so that a first contact needs no fingerprint.
 */
import { Argument, Command, Option } from 'commander';
import { type Connection, IamUtil, type Paired, type PairingInput, type PairingMode, SvcError } from '../client/node.ts';
import { pairingModes } from '../protocol/records/index.ts';
import { checkName } from './client/known.ts';
import { type Opened, withConnection } from './client/open.ts';
import { readPairingString, type TargetOptions, withTarget } from './client/target.ts';
import { ask, canAsk, readStandardInput } from './frame/ask.ts';
import { CommandError, UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { givenPassword, type PasswordOptions, warnOfArgument, withPassword } from './frame/password.ts';

interface PairCommandOptions extends TargetOptions, PasswordOptions {
  mode?: PairingMode;
  username?: string;
  keyName?: string;
  name?: string;
  replace?: boolean;
}

const VARIABLE = 'SVC_PASSWORD';

/** The command `svc pair`. */
export function pairCommand(): Command {
  const command = new Command('pair')
    .description('become a user of a device, in the way it offers')
    .addArgument(new Argument('[device]', 'a pairing string or link, - to read it from standard input, or a device that is known'))
    .option('--username <name>', 'the user to be; an invitation says it itself')
    .addOption(new Option('--mode <mode>', 'choose the way of pairing').choices(pairingModes))
    .option('--key-name <text>', 'what to call the key of this client on the device')
    .option('--name <name>', 'remember the device by this name')
    .option('--replace', 'accept the fingerprint given now in place of the known one');
  withPassword(command, `file with the password, - for standard input; or set ${VARIABLE}; asked for on a terminal`);
  return withTarget(command).action(run);
}

async function run(argument: string | undefined, options: PairCommandOptions): Promise<void> {
  if (options.name !== undefined) checkName(options.name);
  if (argument !== undefined && options.device !== undefined) throw new UsageError('give the device once: as argument or with --device');
  if (argument === '-' && options.passwordFile === '-') throw new UsageError('standard input can be read once: pairing string or password');
  const output = new Output(options.json === true);
  const given = argument ?? options.device;
  const device = given === '-' ? await readStandardInput() : given;
  const pairing = device?.includes('=') ? readPairingString(device) : undefined;
  const password = (await givenPassword(options)) ?? (process.env[VARIABLE] || undefined) ?? pairing?.password;
  if (pairing?.password !== undefined && given !== '-') warnOfArgument(output, 'svc pair - reads a pairing string from standard input');
  const { mode, username, keyName } = options;
  let paired: Paired | undefined;
  const pair = async (connection: Connection): Promise<void> => {
    paired = await new IamUtil(connection)
      .pair({
        ...(mode !== undefined && { mode }),
        ...(pairing !== undefined && { pairing }),
        ...(username !== undefined && { username }),
        ...(password !== undefined && { password }),
        ...(keyName !== undefined && { fingerprintName: keyName }),
        ask: (missing) => askFor(missing, output),
      })
      .catch((error: unknown) => explainLocal(error, connection, mode));
  };
  // The local ways take no password: then the device has proved nothing, whatever is given.
  const proves = password !== undefined && mode?.startsWith('Local') !== true;
  // The local ways: through a base station only where somebody insists on it, to be told that it does not work.
  const near = mode?.startsWith('Local') === true && options.server === undefined;
  const settings = { replace: options.replace === true, name: options.name, near, ...(proves && { prove: pair }) };
  await withConnection(
    { ...options, ...(device !== undefined && { device }) },
    async (opened) => {
      if (paired === undefined) await pair(opened.connection);
      await report(opened, paired as Paired);
    },
    settings,
  );
}

async function report({ connection, known, output, device }: Opened, { mode, user }: Paired): Promise<void> {
  const { ProductId, DeviceId } = connection.deviceInfo as { ProductId: string; DeviceId: string };
  const Fingerprint = connection.getDeviceFingerprint();
  // The user's own token outlives the one it was invited with.
  if (user.sct !== undefined) known.remember({ ProductId, DeviceId, Fingerprint, ServerConnectToken: user.sct });
  await known.save();
  const { username, role } = user;
  const how = mode === null ? 'this client was paired before' : `by ${mode}`;
  output.result(
    { device, username, role, mode, fingerprint: Fingerprint, verified: connection.verified, state: known.directory },
    `paired with ${device} as ${username}${role === undefined ? '' : ` (${role})`}, ${how}`,
  );
}

/** The device says only that it does not allow it. */
function explainLocal(error: unknown, connection: Connection, mode: PairingMode | undefined): never {
  const blocked = error instanceof SvcError && error.code === 'BLOCKED_BY_DEVICE_CONFIGURATION';
  if (!blocked || mode?.startsWith('Local') !== true || connection.getType() !== 'RELAY') throw error;
  throw new CommandError(
    `${error.message} (${error.code}): ${mode} is not possible through the base station: use --address on the local network of the device, or leave --server out there`,
  );
}

async function askFor(missing: PairingInput, output: Output): Promise<string> {
  if (!canAsk(output)) {
    const remedy = missing === 'password' ? `--password-file or ${VARIABLE}` : '--username';
    throw new UsageError(`this pairing needs a ${missing}: give it with ${remedy}`);
  }
  const answer = await ask(`${missing[0]?.toUpperCase()}${missing.slice(1)}: `, { hidden: missing === 'password' });
  if (answer === '') throw new CommandError(`no ${missing} was given: nothing was paired`);
  return answer;
}
