/** `svc key`: the client's private key, its identity towards devices. Only its fingerprint is ever shown. */
import { Command } from 'commander';
import { SvcClient } from '../client/node.ts';
import { Known, stateDirectory } from './client/known.ts';
import { CommandError } from './frame/errors.ts';
import { Output } from './frame/output.ts';

interface KeyOptions {
  state?: string;
  json?: boolean;
}

/** The command `svc key`. */
export function keyCommand(): Command {
  const command = new Command('key').description('create or show the key of this client');
  for (const child of [
    new Command('create').description('create the key, if there is none').action(create),
    new Command('show').description('show the fingerprint of the key').action(show),
  ]) {
    child
      .option('--state <dir>', 'directory of the key (default: $XDG_STATE_HOME/svc or ~/.local/state/svc)')
      .option('--json', 'print the result as JSON');
    command.addCommand(child);
  }
  return command;
}

async function create(options: KeyOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  if ((await known.existingPrivateKey()) !== undefined)
    throw new CommandError(`there is already a key in ${known.directory}: svc key show prints its fingerprint`);
  const client = SvcClient.create();
  print(client, await known.privateKey(client), known, options);
}

async function show(options: KeyOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const pem = await known.existingPrivateKey();
  if (pem === undefined) throw new CommandError(`there is no key in ${known.directory}: create one with svc key create`);
  print(SvcClient.create(), pem, known, options);
}

function print(client: SvcClient, pem: string, known: Known, options: KeyOptions): void {
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: pem });
  const fingerprint = connection.getClientFingerprint();
  new Output(options.json === true).result({ fingerprint, state: known.directory }, fingerprint);
}
