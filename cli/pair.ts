/**
 * `svc pair`: verifies a device, remembers it, and makes this client a user of it, in the mode that the device offers.
 *
 * 1. Connects with the given data: a pairing string or link, options, or the stored data of the device. A password also
 *    verifies the device, so that a first contact needs no fingerprint.
 * 2. Pairs, unless --no-user. It asks for missing input only at a terminal.
 * 3. Prints which user of the device this client is now.
 */
import { Argument, Command, Option } from 'commander';
import { type Connection, IamUtil, type PairingInput, type PairingMode, type PairOptions, SvcError } from '../client/node.ts';
import { isPairing, type PairingString, pairingModes } from '../protocol/records/index.ts';
import { checkName, idOf } from './client/known.ts';
import { type Frame, type OpenConnection, type OpenSettings, withConnection } from './client/open.ts';
import { secretsFromInput } from './client/secrets.ts';
import { ASK_FOR_INVITATION, nextStep, type Standing, standingLine, standingOf } from './client/standing.ts';
import { keyOf, tokenOfUser } from './client/station.ts';
import { givenPairing, readPairingString, type TargetOptions, withTarget } from './client/target.ts';
import { wayOf } from './client/way.ts';
import { ask, canAsk, readSecretLine } from './frame/ask.ts';
import { CommandError, describe, UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { givenPassword, type PasswordOptions, warnOfArgument, withPassword } from './frame/password.ts';
import { shellWord, stateOption } from './frame/shell-word.ts';

export interface PairCommandOptions extends TargetOptions, PasswordOptions {
  mode?: PairingMode;
  username?: string;
  keyName?: string;
  name?: string;
  replace?: boolean;
  /** False: do not become a user. */
  user?: boolean;
}

/** The result. */
interface Outcome {
  readonly standing: Standing;
  /** The mode by which this client became a user now; null when it already was one. */
  readonly mode?: PairingMode | null;
  /** The user's own token, which replaces that of the invitation. */
  readonly sct?: string;
}

const VARIABLE = 'SVC_PASSWORD';
/** Errors after which this client is not a user of the device: it refused. */
const REFUSED: readonly string[] = [
  'AUTHENTICATION_ERROR',
  'BLOCKED_BY_DEVICE_CONFIGURATION',
  'INITIAL_USER_ALREADY_PAIRED',
  'PAIRING_MODE_DISABLED',
];

/** The command `svc pair`. */
export function pairCommand(): Command {
  const command = new Command('pair')
    .description('verify a device, remember it, and become a user of it in the way it offers')
    .option('--username <name>', 'the user to become; an invitation contains it')
    .addOption(new Option('--mode <mode>', 'choose the pairing mode').choices(pairingModes))
    .option('--key-name <text>', "name of this client's key on the device")
    .option('--no-user', 'do not become a user: only verify and remember the device, as svc connect does');
  return withPairing(command).action((device: string | undefined, options: PairCommandOptions) => pair(device, options));
}

/** Adds the common options of `svc pair` and `svc connect`. */
export function withPairing(command: Command): Command {
  command
    .addArgument(new Argument('[device]', 'a pairing string or link, - to read it from standard input, or a known device'))
    .option('--name <name>', 'remember the device by this name')
    .option(
      '--replace',
      'accept another key of the device and of its base station than the known one: that of the pairing string or of the options',
    );
  withPassword(command, `file with the password, - for standard input; or set ${VARIABLE}; asked for on a terminal`);
  return withTarget(command);
}

/**
 * @param argument names the device; undefined: the options do
 * @param frame replaces the surroundings of this process
 */
export async function pair(argument: string | undefined, options: PairCommandOptions, frame?: Frame): Promise<void> {
  check(argument, options);
  const output = frame?.output ?? new Output(options.json === true);
  const { device, pairing, typed } = await deviceOf(argument ?? options.device, output);
  const password = (await givenPassword(options, output)) ?? (process.env[VARIABLE] || undefined) ?? pairing?.password;
  if (pairing?.password !== undefined && typed) warnOfArgument(output, 'svc pair - reads a pairing string from standard input');
  const given = { options: { ...options, ...(device !== undefined && { device }) }, pairing, password, frame };
  await (options.user === false ? look(given) : become(given, requestOf(options, pairing, password, output)));
}

/** The input of the command. */
interface PairInput {
  readonly options: PairCommandOptions;
  readonly pairing: PairingString | undefined;
  readonly password: string | undefined;
  readonly frame: Frame | undefined;
}

/** Verifies and remembers the device, without becoming a user. */
function look({ options, pairing, password, frame }: PairInput): Promise<void> {
  const prove = password === undefined ? undefined : (connection: Connection) => authenticate(connection, pairing, password);
  const work = async (opened: OpenConnection): Promise<void> => {
    const standing = await standingOf(new IamUtil(opened.connection), opened.connection.getClientFingerprint());
    await finish(opened, { standing }, { options, pairing });
  };
  return withConnection(options, work, { ...settingsOf(options, frame), prove });
}

/** Verifies and remembers the device, and becomes a user. */
function become({ options, pairing, password, frame }: PairInput, request: PairOptions): Promise<void> {
  let outcome: Outcome | undefined;
  const prove = async (connection: Connection): Promise<void> => {
    outcome = await pairWith(connection, request);
  };
  const work = async (opened: OpenConnection): Promise<void> =>
    finish(opened, outcome ?? (await pairWith(opened.connection, request)), { options, pairing });
  // The local modes take no password: nothing then verifies the device, even if a password is given.
  const isLocal = options.mode?.startsWith('Local') === true;
  // The local modes: through a base station only if the user insists, to get the device's refusal.
  const near = isLocal && options.server === undefined;
  return withConnection(options, work, { ...settingsOf(options, frame), near, ...(password !== undefined && !isLocal && { prove }) });
}

function settingsOf({ replace, name }: PairCommandOptions, frame: Frame | undefined): Pick<OpenSettings, 'replace' | 'name' | 'frame'> {
  return { replace: replace === true, name, ...(frame !== undefined && { frame }) };
}

async function finish(
  opened: OpenConnection,
  outcome: Outcome,
  { options, pairing }: Pick<PairInput, 'options' | 'pairing'>,
): Promise<void> {
  await remember(opened, outcome);
  report(opened, outcome, { pairing, state: options.state });
}

/** @throws UsageError */
function check(argument: string | undefined, options: PairCommandOptions): void {
  const { name, device, passwordFile, user, mode, username, keyName } = options;
  if (name !== undefined) checkName(name);
  if (argument !== undefined && device !== undefined) throw new UsageError('give the device once: as argument or with --device');
  if ((argument ?? device) === '-' && passwordFile === '-')
    throw new UsageError('standard input can be read once: pairing string or password');
  if ((argument ?? device) === '-' && secretsFromInput(options) > 0)
    throw new UsageError('standard input can be read once: give the pairing string there, and other secrets in files');
  if (user !== false) return;
  for (const [option, value] of Object.entries({ '--mode': mode, '--username': username, '--key-name': keyName }))
    if (value !== undefined) throw new UsageError(`${option} has no effect with --no-user: leave one of them out`);
}

/** Returns the string that names the device, and whether it was in the arguments. @throws UsageError */
async function deviceOf(
  given: string | undefined,
  output: Output,
): Promise<{ device: string | undefined; pairing: PairingString | undefined; typed: boolean }> {
  if (given !== '-') return { device: given, pairing: givenPairing(given), typed: true };
  const device = unbroken(await readSecretLine('Pairing string or link: ', output, (text) => isPairing(unbroken(text))));
  if (device === '') throw new UsageError('no pairing string was given: svc device or svc iam invite NAME prints one');
  return { device, pairing: readPairingString(device), typed: false };
}

/** A mail or a terminal breaks a long line, and a copy of it keeps the breaks; a shell's quotes may be copied along. */
function unbroken(text: string): string {
  return text
    .replace(/\s*[\r\n]+\s*/g, '')
    .trim()
    .replace(/^(["'])(.*)\1$/, '$2');
}

function requestOf(
  { mode, username, keyName }: PairCommandOptions,
  pairing: PairingString | undefined,
  password: string | undefined,
  output: Output,
): PairOptions {
  const isOpen = mode === undefined && (username ?? pairing?.username ?? password) === undefined;
  return {
    ...(mode !== undefined && { mode }),
    ...(pairing !== undefined && { pairing }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(keyName !== undefined && { fingerprintName: keyName }),
    ask: (missing, chosen) => {
      // The device accepts only invited users, and no part of an invitation is given.
      if (isOpen && chosen === 'PasswordInvite') throw new CommandError(`not a user yet: ${ASK_FOR_INVITATION}`);
      return askFor(missing, output);
    },
  };
}

async function pairWith(connection: Connection, request: PairOptions): Promise<Outcome> {
  const iam = new IamUtil(connection);
  try {
    const { mode, user } = await iam.pair(request);
    const { username, role, sct } = user;
    return { mode, standing: { kind: 'user', username, ...(role !== undefined && { role }) }, ...(sct !== undefined && { sct }) };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (['IAM_NOT_SUPPORTED', 'PAIRING_MODE_DISABLED'].includes(error.code)) {
      const standing = await standingOf(iam, connection.getClientFingerprint());
      if (standing.kind === 'no-users') return { standing };
    }
    throw REFUSED.includes(error.code) ? new CommandError(`not a user yet: ${reasonOf(error, connection, request)}`) : error;
  }
}

/**
 * For a local mode the device says only that it does not allow it. The path may change, but not how the connection
 * began.
 */
function reasonOf(error: SvcError, { stationVerified }: Connection, { mode }: PairOptions): string {
  if (error.code !== 'BLOCKED_BY_DEVICE_CONFIGURATION' || mode?.startsWith('Local') !== true || stationVerified === null)
    return describe(error);
  return `${error.message} (${error.code}): ${mode} is not possible through the base station: on the local network of the device, use --address or leave --server out`;
}

/** Lets the device prove that it knows the password, without becoming a user. */
async function authenticate(connection: Connection, pairing: PairingString | undefined, password: string): Promise<void> {
  try {
    await connection.passwordAuthenticate(pairing?.username ?? '', password);
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== 'UNAUTHORIZED') throw error;
    throw new CommandError(
      `the device does not have this password (${error.code}), so it is not verified: an invitation works once. Ask for a new one, or give the fingerprint with --fingerprint`,
    );
  }
}

/** Remembers the user that this client is, with its token. */
async function remember({ connection, known, server }: OpenConnection, { standing, sct }: Outcome): Promise<void> {
  if (standing.kind !== 'user') return;
  const { ProductId, DeviceId } = connection.deviceInfo as { ProductId: string; DeviceId: string };
  const device = { ProductId, DeviceId, Fingerprint: connection.getDeviceFingerprint(), User: standing.username };
  const before = known.byId(ProductId, DeviceId) ?? device;
  const through = connection.stationVerified === null ? undefined : server;
  const place = { station: through === undefined ? known.stationKeyOf(before) : keyOf(through), reached: through !== undefined };
  known.remember({ ...device, ...(sct !== undefined && tokenOfUser(sct, place, before)) });
  await known.save();
}

const PROOFS = { pinned: 'as expected', password: 'verified by the password', none: 'first contact, now remembered' } as const;

function report(
  { connection, output, device, known, server }: OpenConnection,
  { standing, mode }: Outcome,
  { pairing, state }: { pairing: PairingString | undefined; state: string | undefined },
): void {
  const { over, text } = wayOf(connection);
  const info = {
    device,
    fingerprint: connection.getDeviceFingerprint(),
    verified: connection.verified,
    station: connection.stationVerified,
    type: connection.getType(),
    over,
    client: connection.getClientFingerprint(),
    state: known.directory,
    outcome: standing.kind,
    ...(standing.kind === 'user' && { username: standing.username, role: standing.role, mode }),
  };
  const name = known.devices.find((each) => idOf(each) === device)?.Name ?? device;
  const next = standing.kind === 'not-a-user' ? nextStep(standing.modes, { name, state, pairing }) : '';
  output.result(info, [
    `connected to ${device} (${text})`,
    `device fingerprint  ${info.fingerprint} (${PROOFS[info.verified]})`,
    ...stationLines(info.station, server?.url, state),
    `client fingerprint  ${info.client}`,
    `remembered in       ${info.state}`,
    ...(mode === undefined ? [] : [`paired              ${mode === null ? 'before' : `by ${mode}`}`]),
    standingLine(standing, next),
  ]);
}

/** @param url of the remembered base station @param state as it was given */
export function stationLines(station: Connection['stationVerified'], url: string | undefined, state: string | undefined): string[] {
  if (station !== null) return [`base station        ${station === 'pinned' ? 'pinned by its fingerprint' : 'authenticated by TLS'}`];
  return url === undefined ? [] : [`base station        ${url}, which this connect did not need: \`${doctor(url, state)}\` checks it`];
}

function doctor(url: string, state: string | undefined): string {
  return `svc doctor --server ${shellWord(url)}${stateOption(state)}`;
}

async function askFor(missing: PairingInput, output: Output): Promise<string> {
  if (!canAsk(output)) {
    const remedy = missing === 'password' ? `--password-file or ${VARIABLE}` : '--username';
    throw new UsageError(`this pairing needs a ${missing}: give it with ${remedy}`);
  }
  const answer = await ask(`${missing[0]?.toUpperCase()}${missing.slice(1)}: `, { hidden: missing === 'password' });
  if (answer === '') throw new CommandError(`not a user yet: no ${missing} was given`);
  return answer;
}
