/**
 * The addresses from which the system would send to the internet, one of each family: it chooses one when a UDP socket is connected, for which nothing is sent.
 *
 * The system answers in a later turn, so `now` gives what the last question found and asks again when that is old.
 */
import { createSocket, type SocketType } from 'node:dgram';
import { numericLookup } from './family-socket.ts';

/** Addresses of documentation (RFC 5737, RFC 3849): no host of ours has a route of its own there. Any port will do. */
const FAR: readonly (readonly [SocketType, string])[] = [
  ['udp4', '192.0.2.1'],
  ['udp6', '2001:db8::1'],
];
const DISCARD = 9;
/** ms. Networks change seldom. */
const REFRESH = 3_000;

export class OutwardAddresses {
  #addresses: readonly string[] = [];
  #askedAt = Number.NEGATIVE_INFINITY;

  now(): readonly string[] {
    if (performance.now() - this.#askedAt > REFRESH) void this.refresh();
    return this.#addresses;
  }

  async refresh(): Promise<void> {
    this.#askedAt = performance.now();
    const found = await Promise.all(FAR.map(([family, address]) => sourceFor(family, address)));
    this.#addresses = found.filter((address) => address !== null);
  }
}

/** The address from which the system would send to one; null where it has no way there. */
export function sourceFor(type: SocketType, address: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket({ type, lookup: numericLookup });
    const done = (source: string | null): void => {
      socket.close();
      resolve(source);
    };
    // A callback of `connect` would be given the errors, too, and the event none.
    socket.once('error', () => done(null));
    socket.once('connect', () => done(socket.address().address));
    socket.connect(DISCARD, address);
  });
}
