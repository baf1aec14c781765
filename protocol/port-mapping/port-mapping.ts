/**
 * The mapping of one UDP port at one gateway, sans-IO: requested with PCP, or with NAT-PMP where the gateway has no
 * PCP; renewed, and deleted at the end.
 *
 * Theory of operation:
 *
 *   asking ──granted──▶ held ──half its life──▶ held, renewing ──granted──▶ held
 *     │ ▲                 └──its life is over, or the gateway lost it and refuses──▶ asking, later
 *     │ └─── after a pause ──┐
 *     └──refused, silent──▶ resting
 *
 * 1. A request is repeated a few times, after a pause that doubles (RFC 6887 §8.1.1, RFC 6886 §3.1). A gateway that
 *    does not support PCP, or is silent, is asked with NAT-PMP; one that refuses, or is silent again, is not asked for
 *    a while.
 * 2. A mapping is renewed when half of its remaining life is over, repeatedly until the gateway answers (RFC 6887
 *    §11.2.1).
 * 3. The gateway states how long it has known its mappings. When that jumps, the held mapping is void (epoch.ts): a
 *    refusal then ends it immediately.
 * 4. `close` deletes the mapping that the gateway may hold, with a few requests, and reports `closed`.
 *
 * The caller passes on only datagrams from the gateway's address. The gateway is trusted as far as its own power goes:
 * the caller decides whether the address that it states is a global one.
 *
 * Call `nextTimeout` first: the first request is due immediately. After `receive`, `handleTimeout` and `close`:
 * `transmit` until null, `nextEvent` until null, then `nextTimeout`.
 */
import { Epoch } from './epoch.ts';
import { type GrantedMapping, type MappingRequests, NatPmpRequests, PcpRequests } from './requests.ts';

/** Constants of the specifications: ms until the first repetition. */
const FIRST_TIMEOUT = { PCP: 3_000, 'NAT-PMP': 250 } as const;

/** Our constants: requests without an answer before the gateway counts as silent: 21 s of PCP, and 8 s of NAT-PMP. */
export const TRIES = { PCP: 3, 'NAT-PMP': 5 } as const;
/**
 * Requested lifetime, s. A gateway does not announce its restart here, so a mapping may be missing for half of this.
 */
const LIFETIME = 3_600;
/** Bounds of a granted lifetime, s: less is not worth the traffic; more counts as this (RFC 6887 §15). */
const MIN_LIFETIME = 60;
const MAX_LIFETIME = 86_400;
/** ms between two renewals (RFC 6887 §11.2.1). */
export const MIN_PAUSE = 4_000;
/**
 * ms until a gateway that refused or was silent is asked again. If it states a time, that time counts, within these
 * bounds.
 */
export const REST = 900_000;
export const MIN_REST = 60_000;
/** Number of deletion requests, and ms between them. */
const DELETIONS = 3;
const DELETION_TIMEOUT = 250;

const NEVER = Number.POSITIVE_INFINITY;

/**
 * - mapped: peers reach the port at this address; repeated when the address changes
 * - lost: no longer
 * - refused: the gateway does not map, or does not answer (`reason`); it is asked again later
 * - closed: the last event
 */
export type PortMappingEvent =
  | { readonly kind: 'mapped'; readonly address: Uint8Array; readonly port: number }
  | { readonly kind: 'lost' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'closed' };

export interface PortMappingOptions {
  readonly internalPort: number;
  /**
   * Our own address as the gateway sees it, 4 or 16 bytes; null where unknown: PCP needs it, so only NAT-PMP remains.
   */
  readonly client: Uint8Array | null;
  /** 12 unguessable bytes (RFC 6887 §11.2). */
  readonly nonce: Uint8Array;
}

export class PortMapping {
  readonly #options: PortMappingOptions;
  readonly #epoch = new Epoch();
  readonly #events: PortMappingEvent[] = [];
  #requests: MappingRequests;
  #state: 'asking' | 'held' | 'resting' | 'closing' | 'closed' = 'asking';
  /** The last granted mapping: requested again, and deleted at the end. */
  #granted: GrantedMapping | null = null;
  /** The end of the held mapping. */
  #expiresAt = NEVER;
  /** When the next request is due. */
  #askAt: number;
  #isDue = false;
  /** Requests sent without an answer. */
  #tries = 0;
  /** The gateway may hold a mapping for us. */
  #mayHold = false;

  constructor(options: PortMappingOptions, now: number) {
    this.#options = options;
    this.#requests = this.#first();
    this.#askAt = now;
  }

  /** Processes a datagram from the gateway's address and port. */
  receive(datagram: Uint8Array, now: number): void {
    const answer = this.#tries > 0 && this.#state !== 'resting' && this.#state !== 'closed' ? this.#requests.answer(datagram) : null;
    if (answer === null) return;
    if (answer.kind === 'unsupported') {
      this.#unsupported(now);
      return;
    }
    const isLost = this.#epoch.isLost(answer.epoch, now);
    if (this.#state === 'closing') {
      if (answer.kind !== 'next') this.#end();
    } else if (answer.kind === 'next') this.#next(now);
    else if (answer.kind === 'granted') this.#grant(answer.granted, now);
    else this.#refuse(answer.reason, answer.retryAfter, isLost, now);
  }

  /** Returns the request to send now, else null. */
  transmit(): Uint8Array | null {
    if (!this.#isDue) return null;
    this.#isDue = false;
    this.#mayHold ||= this.#state !== 'closing';
    return this.#requests.request(this.#state === 'closing' ? 0 : LIFETIME, this.#granted);
  }

  nextTimeout(): number {
    return Math.min(this.#askAt, this.#state === 'held' ? this.#expiresAt : NEVER);
  }

  handleTimeout(now: number): void {
    if (this.#state === 'held' && now >= this.#expiresAt) {
      this.#events.push({ kind: 'lost' });
      this.#begin(now);
    }
    if (now < this.#askAt) return;
    if (this.#state === 'resting') this.#begin(now);
    if (this.#state === 'held') this.#renew(now);
    else this.#ask(now);
  }

  nextEvent(): PortMappingEvent | null {
    return this.#events.shift() ?? null;
  }

  /** Deletes the mapping that the gateway may hold. May be called again. */
  close(now: number): void {
    if (this.#state === 'closing' || this.#state === 'closed') return;
    if (!this.#mayHold) {
      this.#end();
      return;
    }
    this.#state = 'closing';
    this.#askNow(now);
  }

  #first(): MappingRequests {
    const { client, nonce, internalPort } = this.#options;
    return client === null ? new NatPmpRequests(internalPort) : new PcpRequests(client, nonce, internalPort);
  }

  #begin(now: number): void {
    this.#state = 'asking';
    this.#requests = this.#first();
    this.#askNow(now);
  }

  /** Makes the next request due immediately, as the first of its kind. */
  #askNow(now: number): void {
    this.#tries = 0;
    this.#askAt = now;
  }

  #ask(now: number): void {
    const isClosing = this.#state === 'closing';
    const { protocol } = this.#requests;
    if (this.#tries >= (isClosing ? DELETIONS : TRIES[protocol])) {
      if (isClosing) this.#end();
      else if (this.#fallBack(now)) this.#ask(now);
      else this.#rest('no answer', REST, now);
      return;
    }
    this.#isDue = true;
    this.#askAt = now + (isClosing ? DELETION_TIMEOUT : FIRST_TIMEOUT[protocol] * 2 ** this.#tries);
    this.#tries++;
  }

  /** Also queries the address again, since it may have changed. */
  #renew(now: number): void {
    this.#requests.begin();
    this.#isDue = true;
    this.#tries = 1;
    this.#askAt = now + Math.max(MIN_PAUSE, (this.#expiresAt - now) / 2);
  }

  /**
   * Sends the next of several requests. A renewal without an answer leaves no state: it begins again after its pause.
   */
  #next(now: number): void {
    this.#isDue = true;
    this.#tries = 1;
    if (this.#state === 'asking') this.#askAt = now + FIRST_TIMEOUT[this.#requests.protocol];
  }

  /** Falls back to NAT-PMP where PCP had no answer. */
  #fallBack(now: number): boolean {
    if (this.#requests.protocol === 'NAT-PMP' || this.#options.client?.length !== 4) return false;
    this.#requests = new NatPmpRequests(this.#options.internalPort);
    this.#askNow(now);
    return true;
  }

  /** Ignores a gateway that changes its answer while it holds a mapping: the mapping is renewed, or expires. */
  #unsupported(now: number): void {
    if (this.#state === 'closing') this.#end();
    else if (this.#state === 'asking' && !this.#fallBack(now)) this.#rest('no protocol in common', REST, now);
  }

  #grant(granted: GrantedMapping, now: number): void {
    if (granted.port === 0 || granted.lifetime < MIN_LIFETIME) {
      this.#rest('a mapping that cannot be used', REST, now);
      this.#mayHold = true;
      return;
    }
    const before = this.#state === 'held' ? this.#granted : null;
    this.#state = 'held';
    this.#granted = granted;
    this.#tries = 0;
    this.#expiresAt = now + Math.min(granted.lifetime, MAX_LIFETIME) * 1000;
    this.#askAt = now + (this.#expiresAt - now) / 2;
    const { address, port } = granted;
    if (before === null || before.port !== port || before.address.join() !== address.join())
      this.#events.push({ kind: 'mapped', address, port });
  }

  /** @param isVoid the held mapping is no longer valid; else it is requested again until it expires */
  #refuse(reason: string, retryAfter: number, isVoid: boolean, now: number): void {
    if (this.#state === 'held' && !isVoid) {
      this.#tries = 0;
      return;
    }
    this.#rest(reason, retryAfter === 0 ? REST : Math.min(REST, Math.max(MIN_REST, retryAfter * 1000)), now);
  }

  #rest(reason: string, pause: number, now: number): void {
    if (this.#state === 'held') this.#events.push({ kind: 'lost' });
    this.#events.push({ kind: 'refused', reason });
    this.#state = 'resting';
    this.#mayHold = false;
    this.#isDue = false;
    this.#askAt = now + pause;
  }

  #end(): void {
    this.#state = 'closed';
    this.#isDue = false;
    this.#askAt = NEVER;
    this.#events.push({ kind: 'closed' });
  }
}
