/**
 * Where a client command gets a token of an issuer from. A token lets its holder connect, and arguments are seen by everybody who may list
 * the processes of this machine: so a file or standard input is the way, and an argument is warned of.
 */
import type { ConnectionOptions } from '../../client/node.ts';
import { UsageError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { secretText } from '../frame/secret.ts';

export interface JwtOptions {
  jwt?: string;
  jwtFile?: string;
}

/** A file is read for each connect: who renews its token there need not start the command again. */
export async function givenJwt({ jwt, jwtFile }: JwtOptions, output: Output): Promise<ConnectionOptions['ServerJwtToken']> {
  if (jwt !== undefined && jwtFile !== undefined) throw new UsageError('--jwt and --jwt-file exclude each other');
  if (jwt === '-' || jwtFile === '-') return fromSource('-', output);
  if (jwtFile !== undefined) {
    // What is wrong with it is said before anything is connected.
    await fromSource(jwtFile, output);
    return () => fromSource(jwtFile, output);
  }
  if (jwt === undefined) return undefined;
  output.warn(
    'the token was in the arguments, where other users of this machine can see it: give it with --jwt-file, or --jwt - and standard input',
  );
  return checked(jwt, '--jwt is');
}

/** @param where a file, or `-` for standard input */
async function fromSource(where: string, output: Output): Promise<string> {
  return checked(await secretText(where, 'the token', output), `${where === '-' ? 'standard input' : where} holds`);
}

function checked(token: string, where: string): string {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    throw new UsageError(`${where} no token (JWT): three parts with dots between them, without blanks and line breaks`);
  return token;
}
