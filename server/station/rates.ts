/** The keys of a base station's rates, and the answer to requests above a rate. */
import { networkOf } from '../../protocol/address.ts';
import { type CoapReply, Status, textReply } from '../../protocol/coap/index.ts';
import type { Path } from '../../protocol/path.ts';

/** Seconds' worth of a rate that may come at once: after a restart many come together. */
export const BURST_SECONDS = 10;

/** Returns 4.29 with the time after which another attempt may succeed. */
export function tooMany(seconds: number): CoapReply {
  return { ...textReply(Status.TOO_MANY_REQUESTS, 'Too many requests'), maxAge: seconds };
}

/** Returns what counts as one address: an IPv4 address, the /64 of an IPv6 one. */
export function addressKey({ address }: Path): string {
  return networkOf(address);
}
