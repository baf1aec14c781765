/**
 * Where a client command gets a token of an issuer from. A token lets its holder connect, and arguments are seen by everybody who may list the processes of this
 * machine: so a file or standard input is the way, and an argument is warned of.
 */
import type { ConnectionOptions } from '../../client/node.ts';
import { readStandardInput } from '../frame/ask.ts';
import { UsageError } from '../frame/errors.ts';
import { readGivenFile } from '../frame/given-file.ts';
import type { Output } from '../frame/output.ts';

export interface JwtOptions {
  jwt?: string;
  jwtFile?: string;
}

/** A file is read for each connect: who renews its token there need not start the command again. */
export async function givenJwt({ jwt, jwtFile }: JwtOptions, output: Output): Promise<ConnectionOptions['ServerJwtToken']> {
  if (jwt !== undefined && jwtFile !== undefined) throw new UsageError('--jwt and --jwt-file exclude each other');
  if (jwt === '-' || jwtFile === '-') return checked(await readStandardInput(), 'standard input holds');
  if (jwtFile !== undefined) {
    // What is wrong with it is said before anything is connected.
    await fromFile(jwtFile);
    return () => fromFile(jwtFile);
  }
  if (jwt === undefined) return undefined;
  output.warn(
    'the token was in the arguments, where other users of this machine can see it: give it with --jwt-file, or --jwt - and standard input',
  );
  return checked(jwt, '--jwt is');
}

async function fromFile(path: string): Promise<string> {
  return checked(new TextDecoder().decode(await readGivenFile(path)).replace(/[\r\n]+$/, ''), `${path} holds`);
}

function checked(token: string, where: string): string {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    throw new UsageError(`${where} no token (JWT): three parts with dots between them, without blanks and line breaks`);
  return token;
}
