/** The rates of a base station: their keys, the answer to requests above one, and that of connects to a device. */
import { networkOf } from '../../protocol/address.ts';
import { type CoapReply, Status, textReply } from '../../protocol/coap/index.ts';
import type { Path } from '../../protocol/path.ts';
import { Rates } from '../../protocol/rates.ts';

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

/** What the rates count a connect by: its client and device. */
export interface ConnectKeys {
  readonly device: string;
  /** Hash of the token or key that was shown. */
  readonly credential: string;
  /** As `addressKey` returns it. */
  readonly address: string;
}

/** Connects a second of their own, for each token, and for each address with it. */
const OWN = 1;

/**
 * Limits how often a device is connected to. The holders of its tokens share the rate, so that none locks out the
 * others.
 *
 * - All together have the device's rate.
 * - When it is used up, a token or key without a connect in this second still gets one; as many tokens as the rate
 *   allows.
 * - So does an address that made no connect with its token in this second; at most half as many addresses.
 *
 * Clients without a valid credential are refused before that. A client's key does not count: it is a fresh one for each
 * base station.
 */
export class ConnectRates {
  readonly #ofDevice: Rates;
  readonly #ofCredential = new Rates(OWN, OWN);
  readonly #ofCredentials: Rates;
  readonly #ofAddress = new Rates(OWN, OWN);
  readonly #ofAddresses: Rates;

  /** @param rate connects a second to one device */
  constructor(rate: number) {
    const half = Math.max(1, rate / 2);
    this.#ofDevice = new Rates(rate, rate);
    this.#ofCredentials = new Rates(rate, rate);
    this.#ofAddresses = new Rates(half, half);
  }

  /** Takes one connect. @param now ms, monotonic @returns 0, or the seconds to wait */
  take({ device, credential, address }: ConnectKeys, now: number): number {
    const holder = `${device} ${credential}`;
    // Taken also where the device's rate suffices: after a connect in this second the holder has no own one left.
    const isFirst = this.#ofCredential.take(holder, now) === 0;
    const isFirstHere = this.#ofAddress.take(`${holder} ${address}`, now) === 0;
    const wait = this.#ofDevice.take(device, now);
    if (wait === 0) return 0;
    if (isFirst && this.#ofCredentials.take(device, now) === 0) return 0;
    return isFirstHere && this.#ofAddresses.take(device, now) === 0 ? 0 : wait;
  }
}
