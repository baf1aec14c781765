/**
 * Source of an issuer's token for a client command. A token lets its holder connect, and every user who may list the
 * processes of this machine sees arguments: so a token comes from a file or standard input, and one in the arguments
 * causes a warning.
 */
import type { ConnectionOptions } from '../../client/node.ts';
import { UsageError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { secretText } from '../frame/secret.ts';

export interface JwtOptions {
  jwt?: string;
  jwtFile?: string;
}

/** Returns the token. A file is read for each connect, so that a renewed token needs no restart of the command. */
export async function givenJwt({ jwt, jwtFile }: JwtOptions, output: Output): Promise<ConnectionOptions['ServerJwtToken']> {
  if (jwt !== undefined && jwtFile !== undefined) throw new UsageError('--jwt and --jwt-file exclude each other');
  if (jwt === '-' || jwtFile === '-') return fromSource('-', output);
  if (jwtFile !== undefined) {
    // Reports an invalid token before anything is connected.
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
