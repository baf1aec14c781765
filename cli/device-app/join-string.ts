/**
 * The join string of `svc device --join`: from standard input, from a file, or, with a warning, as the argument itself.
 */
import { SvcError } from '../../device/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import { decodeJoinString, isPairing, JOIN_PREFIX, type JoinString } from '../../protocol/records/index.ts';
import { readSecretLine } from '../frame/ask.ts';
import { UsageError } from '../frame/errors.ts';
import { readGivenFile } from '../frame/given-file.ts';
import type { Output } from '../frame/output.ts';

/** A join string, and its content. */
export interface GivenJoin {
  readonly text: string;
  readonly join: JoinString;
}

/** Beginning of a join string, before its secret. */
const SCHEME = /^svc:\/\//;

/**
 * @param where the value of --join: `-`, a file, or the string itself
 * @throws UsageError that says what is wrong, never with the string, which holds a secret
 */
export async function givenJoin(where: string, output: Output): Promise<GivenJoin> {
  return parseJoin(await textOf(where, output));
}

/** @throws UsageError */
export function parseJoin(given: string): GivenJoin {
  // A terminal breaks a long line, and a copy of it keeps the breaks.
  const text = given.replace(/\s+/g, '');
  if (text === '') throw new UsageError(`no join string was given: svc admin device invite prints one at the base station`);
  try {
    return { text, join: decodeJoinString(text) };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (isPairing(given))
      throw new UsageError(
        'that is a pairing string, for clients (svc pair -): a device needs a join string, which svc admin device invite prints at the base station',
      );
    throw new UsageError(error.message);
  }
}

async function textOf(where: string, output: Output): Promise<string> {
  if (where === '-')
    return readSecretLine('Join string: ', output, (text) => orElse(() => decodeJoinString(text.replace(/\s+/g, '')), null) !== null);
  if (!SCHEME.test(where) && !isPairing(where)) return contentOf(where);
  if (where.startsWith(JOIN_PREFIX))
    output.warn(
      'the join string was in the arguments, where other users of this machine can see it: give it with --join - on standard input',
    );
  return where;
}

async function contentOf(path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await readGivenFile(path));
  } catch (error) {
    throw new UsageError(`--join: ${(error as Error).message}; - reads the join string from standard input`);
  }
}
