/**
 * The secrets among the options of a client command: server connect token and server key. `jwt.ts` handles an issuer's
 * token.
 */
import { UsageError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { givenSecret } from '../frame/secret.ts';
import type { TargetOptions } from './target.ts';

/** Returns the options with the secrets themselves. @throws UsageError, CommandError */
export async function withSecrets<Options extends TargetOptions>(options: Options, output: Output): Promise<Options> {
  const { sct, sctFile, serverKey, serverKeyFile, jwt, jwtFile, ...rest } = options;
  if (secretsFromInput(options) > 1)
    throw new UsageError('standard input can be read once: give one secret there, and the others in files');
  const token = await givenSecret(
    { what: 'the server connect token', option: '--sct', value: sct, fileOption: '--sct-file', file: sctFile },
    output,
  );
  const key = await givenSecret(
    { what: 'the server key', option: '--server-key', value: serverKey, fileOption: '--server-key-file', file: serverKeyFile },
    output,
  );
  return {
    ...rest,
    ...(jwt !== undefined && { jwt }),
    ...(jwtFile !== undefined && { jwtFile }),
    ...(token !== undefined && { sct: token }),
    ...(key !== undefined && { serverKey: key }),
  } as Options;
}

/** Number of secrets that come from standard input. */
export function secretsFromInput({ sct, sctFile, serverKey, serverKeyFile, jwt, jwtFile }: TargetOptions): number {
  return [sct, sctFile, serverKey, serverKeyFile, jwt, jwtFile].filter((given) => given === '-').length;
}
