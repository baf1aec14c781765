/** Decodes the bodies of answers; a malformed one is BAD_RESPONSE, the peer's fault. */
import { RemoteError, SvcError } from '../protocol/errors/index.ts';

/** Returns `decode(payload)`. @param what names the exchange in the message. @throws RemoteError BAD_RESPONSE */
export function decodeResponse<T>(what: string, decode: (payload: Uint8Array) => T, payload: Uint8Array): T {
  try {
    return decode(payload);
  } catch (error) {
    if (error instanceof SvcError) throw new RemoteError('BAD_RESPONSE', `${what}: ${error.message}`, { cause: error });
    throw error;
  }
}
