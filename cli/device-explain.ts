/**
 * `svc device explain`: shows whether a user may do something on a device, and which policy statement decides. Only
 * reads the device's directory, also while the device runs.
 */
import { resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { iamEndpoints } from '../device/iam/endpoints/index.ts';
import { type Caller, createIamSecrets } from '../device/index.ts';
import { readAccess } from './device-app/access.ts';
import { collect } from './frame/arguments.ts';
import { CommandError, UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { readPrivateKey } from './frame/private-key.ts';
import { sharedOptions } from './frame/shared-options.ts';

interface ExplainOptions {
  data: string;
  json?: boolean;
  as?: string;
  action: string;
  attribute: [string, string][];
  local?: boolean;
}

/** The command `svc device explain`; --data and --json are those of `svc device`. */
export function deviceExplainCommand(): Command {
  return new Command('explain')
    .description('show whether a user may do something, and which statement of which policy decides')
    .option('--as <user>', 'the user that makes the request (default: a client that is not a user)')
    .requiredOption('--action <action>', 'for example TcpTunnel:Connect, Thermostat:Set or IAM:DeleteUser')
    .addOption(
      new Option('--attribute <name=value>', 'an attribute of the request, for example TcpTunnel:ServiceId=web; repeatable')
        .argParser(collect(attribute))
        .default([], 'none'),
    )
    .option('--local', 'over a connection on the local network')
    .option('--data <dir>', 'directory of the device')
    .option('--json', 'JSON on standard output')
    .action((_options: unknown, command: Command) => run(sharedOptions<ExplainOptions>(command, ['data', 'json'])));
}

async function run({ data, json, as, action, attribute, local = false }: ExplainOptions): Promise<void> {
  const directory = resolve(data);
  const key = await readPrivateKey(directory);
  if (key === undefined) throw new CommandError(`${directory} is not the directory of a device: there is no key.pem`);
  if (!deviceActions().includes(action))
    throw new UsageError(
      `--action ${JSON.stringify(action)}: the device has no such action; the actions are ${deviceActions().join(', ')}`,
    );
  const iam = await readAccess(directory, createIamSecrets(key));
  if (as !== undefined && iam.user(as) === undefined) throw new UsageError(`--as ${as}: the device has no such user`);
  const caller: Caller = { fingerprint: '', isLocal: local, ...(as !== undefined && { boundUsername: as }) };
  const decision = iam.explain(caller, action, Object.fromEntries(attribute));
  new Output(json === true).result(decision, decision.text);
}

function attribute(text: string): [string, string] {
  const match = /^([^=]+)=(.*)$/s.exec(text);
  if (match === null) throw new InvalidArgumentError('Expected name=value, for example TcpTunnel:ServiceId=web.');
  return [match[1] as string, match[2] as string];
}

/** Every action that `svc device` checks, those of the SDK and its own, in alphabetical order. */
function deviceActions(): readonly string[] {
  const endpoints = iamEndpoints.flatMap(({ action, pairing }) => action ?? (pairing === undefined ? [] : `IAM:Pairing${pairing}`));
  const tunnels = ['TcpTunnel', 'UdpTunnel'].flatMap((kind) => ['ListServices', 'GetService', 'Connect'].map((verb) => `${kind}:${verb}`));
  const own = ['Thermostat:Get', 'Thermostat:Set', 'File:Transfer'];
  return [...new Set([...endpoints, ...tunnels, ...own])].sort();
}
