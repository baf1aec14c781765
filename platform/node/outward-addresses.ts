/**
 * The addresses from which the system would send to the internet, one of each family: connecting a UDP socket selects
 * one without sending anything.
 *
 * The system answers in a later turn, so `now` returns the last result, and queries again when that is old.
 */
import { createSocket, type SocketType } from 'node:dgram';
import { numericLookup } from './family-socket.ts';

/** Addresses of documentation (RFC 5737, RFC 3849): no real host has a route of its own there. Any port will do. */
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

/** Returns the address from which the system would send to another one; null if it has no route there. */
export function sourceFor(type: SocketType, address: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket({ type, lookup: numericLookup });
    const done = (source: string | null): void => {
      socket.close();
      resolve(source);
    };
    // A callback of `connect` would also receive the errors, and the event would not.
    socket.once('error', () => done(null));
    socket.once('connect', () => done(socket.address().address));
    socket.connect(DISCARD, address);
  });
}
