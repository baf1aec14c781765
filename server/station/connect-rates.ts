/**
 * How often a device is connected to: so many times a second, and the holders of its tokens share that, so that none shuts out the others.
 *
 * - All together have the device's rate.
 * - When it is used up, a token or key that had no connect in this second gets one all the same; as many tokens as the rate says.
 * - So does an address that had none with its token; half as many addresses.
 *
 * Who shows no valid credential is refused before that. A client's key says nothing: it is a fresh one for each base station.
 */
import { Rates } from '../../protocol/rates.ts';

/** Who connects, to which device. */
export interface Connecting {
  readonly device: string;
  /** Hash of the token or key that was shown. */
  readonly credential: string;
  /** As `addressKey` gives it. */
  readonly address: string;
}

/** A second of its own: for each token, and for each address with it. */
const OWN = 1;

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

  /** Takes one. @param now ms, monotonic @returns 0, or the seconds to wait */
  take({ device, credential, address }: Connecting, now: number): number {
    const holder = `${device} ${credential}`;
    // Taken also where the device's rate is enough: who has had a connect in this second has nothing of its own left.
    const isFirst = this.#ofCredential.take(holder, now) === 0;
    const isFirstHere = this.#ofAddress.take(`${holder} ${address}`, now) === 0;
    const wait = this.#ofDevice.take(device, now);
    if (wait === 0) return 0;
    if (isFirst && this.#ofCredentials.take(device, now) === 0) return 0;
    return isFirstHere && this.#ofAddresses.take(device, now) === 0 ? 0 : wait;
  }
}
