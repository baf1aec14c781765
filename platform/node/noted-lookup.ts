/** The system's resolver for one connection, which knows whether it still waits: no server is slow then. */
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { RemoteError } from '../../protocol/errors/index.ts';

export class NotedLookup {
  #waiting: string | null = null;

  readonly lookup: LookupFunction = (host, options, done) => {
    this.#waiting = host;
    dns.lookup(host, options, (...answer) => {
      this.#waiting = null;
      done(...(answer as Parameters<typeof done>));
    });
  };

  /** Call when a time is up. @throws RemoteError DNS where the resolver is what did not answer */
  refuseSilent(): void {
    if (this.#waiting !== null)
      throw new RemoteError('DNS', `the resolver does not answer for ${this.#waiting}: check the name and this host's DNS`);
  }
}
