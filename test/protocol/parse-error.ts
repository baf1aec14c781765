import { expect } from 'vitest';
import { RemoteError } from '../../protocol/errors/index.ts';

/** The message of the RemoteError PARSE that `read` throws. */
export function parseError(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(RemoteError);
    expect((error as RemoteError).code).toBe('PARSE');
    return (error as RemoteError).message;
  }
  throw new Error('nothing was thrown');
}
