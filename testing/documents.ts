/**
 * Answers over https in a simulation: a text, an error or silence for each URL. There is no TLS: the test decides what
 * a certificate proves.
 */

import type { Clock, HttpsAnswer, HttpsGet, HttpsRequest } from '../platform/environment.ts';
import { LocalError, RemoteError } from '../protocol/errors/index.ts';

/** The answer of a URL: a body, an error, or null for none within the time allowed. */
export type SimulatedDocument = (request: HttpsRequest) => string | Error | null;

/** Virtual ms until an answer: a TCP and a TLS handshake, and the request. */
const DELAY = 60;

/** @param documents by URL; no server listens at others */
export function simulatedGet(documents: ReadonlyMap<string, SimulatedDocument>, clock: Clock): HttpsGet {
  return (request) =>
    new Promise<HttpsAnswer>((resolve, reject) => {
      const { url, timeout, limit, signal } = request;
      const stopped = (): void => reject(new LocalError('STOPPED', 'the request was stopped'));
      if (signal?.aborted === true) return stopped();
      signal?.addEventListener('abort', stopped, { once: true });
      clock.schedule(timeout, () => reject(new RemoteError('TIMEOUT', `${url} did not answer within ${timeout} ms`)));
      clock.schedule(DELAY, () => {
        const answer = documents.get(url)?.(request);
        if (answer === undefined) reject(new RemoteError('CONNECTION_REFUSED', `no server listens at ${url}`));
        else if (answer instanceof Error) reject(answer);
        else if (answer !== null && answer.length > limit) reject(new RemoteError('BAD_RESPONSE', `more than ${limit} bytes`));
        else if (answer !== null) resolve({ status: 200, body: new TextEncoder().encode(answer) });
      });
    });
}
