/** The secrets among the options of a client command: server connect token and server key. The token of an issuer: `jwt.ts`. */
import { UsageError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { givenSecret } from '../frame/secret.ts';
import type { TargetOptions } from './target.ts';

/** The options with the secrets themselves. @throws UsageError, CommandError */
export async function withSecrets<Options extends TargetOptions>(options: Options, output: Output): Promise<Options> {
  const { sct, sctFile, serverKey, serverKeyFile, jwt, jwtFile, ...rest } = options;
  const fromInput = [sct, sctFile, serverKey, serverKeyFile, jwt, jwtFile].filter((given) => given === '-');
  if (fromInput.length > 1) throw new UsageError('standard input can be read once: give one of the secrets by it, and the others by files');
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
