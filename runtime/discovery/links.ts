/**
 * Runs a part of `protocol/discovery/` on each link of a host: opens its socket, passes on what arrives, sends what it
 * produces and serves its timer. Links are checked every few seconds; an unusable one is tried again and does not
 * affect others. A link whose addresses change gets a new socket for them.
 */

import type { Cancel, Environment } from '../../platform/environment.ts';
import type { MdnsLink, MdnsNetwork, MdnsSocket } from '../../platform/mdns.ts';
import type { DnsMessage, MdnsSource, OutgoingDnsMessage } from '../../protocol/discovery/index.ts';

/** ms between two checks of the links. */
const POLL = 5_000;

/** The part that runs on a link: the four verbs (ARCHITECTURE.md). */
export interface LinkPart<Event> {
  receive(message: DnsMessage, from: MdnsSource, now: number, own: boolean): void;
  transmit(): OutgoingDnsMessage | null;
  nextEvent(): Event | null;
  nextTimeout(): number;
  handleTimeout(now: number): void;
}

export interface LinksOptions<Part, Event> {
  readonly environment: Environment;
  readonly network: MdnsNetwork;
  /** Makes the part of a link. @param random returns 0 to below 1 at each call */
  begin(link: MdnsLink, random: () => number): Part;
  /** The link has other addresses now. */
  changed(part: Part, link: MdnsLink): void;
  event(event: Event, link: MdnsLink): void;
  /** The link is gone, or failed. */
  ended?(link: MdnsLink): void;
  /**
   * Names of links whose failure was logged, for an owner that starts repeatedly: each is logged once. Default: of
   * these links only.
   */
  readonly failed?: Set<string>;
}

interface Place<Part> {
  link: MdnsLink;
  readonly part: Part;
  socket: MdnsSocket;
  cancel: Cancel;
}

/** The parts of all links. */
export class MdnsLinks<Part extends LinkPart<Event>, Event> {
  readonly #options: LinksOptions<Part, Event>;
  readonly #places = new Map<string, Place<Part>>();
  /** Links whose failure was logged. */
  readonly #failed: Set<string>;
  #cancelPoll: Cancel = () => {};
  #closed = false;

  constructor(options: LinksOptions<Part, Event>) {
    this.#options = options;
    this.#failed = options.failed ?? new Set();
  }

  start(): void {
    this.#poll();
  }

  /** Calls `act` for each part, then serves the part. */
  each(act: (part: Part, link: MdnsLink) => void): void {
    for (const place of [...this.#places.values()]) {
      act(place.part, place.link);
      this.#serve(place);
    }
  }

  /** Closes all sockets. @param lastWords a part's final message. Resolves when that has left. */
  async close(lastWords?: (part: Part) => DnsMessage | null): Promise<void> {
    this.#closed = true;
    this.#cancelPoll();
    await Promise.all([...this.#places.values()].map((place) => this.#leave(place, lastWords)));
  }

  #poll(): void {
    const { clock, log } = this.#options.environment;
    this.#cancelPoll = clock.schedule(POLL, () => this.#poll());
    try {
      const links = new Map(this.#options.network.links().map((link) => [link.name, link]));
      for (const place of [...this.#places.values()]) if (!links.has(place.link.name)) void this.#leave(place);
      for (const name of this.#failed) if (!links.has(name)) this.#failed.delete(name);
      for (const link of links.values()) this.#see(link);
    } catch (error) {
      log.warn('mDNS: the interfaces of this host cannot be read', { error: error instanceof Error ? error.message : String(error) });
    }
  }

  #see(link: MdnsLink): void {
    // A listener that hears of a lost link may close the others.
    if (this.#closed) return;
    const place = this.#places.get(link.name);
    if (place === undefined) {
      this.#join(link);
      return;
    }
    if (place.link.addresses.join() === link.addresses.join()) return;
    void place.socket.close();
    place.link = link;
    place.socket = this.#open(place);
    this.#options.changed(place.part, link);
    this.#serve(place);
  }

  #join(link: MdnsLink): void {
    const unopened: MdnsSocket = { send: () => {}, close: async () => {} };
    const place: Place<Part> = { link, part: this.#options.begin(link, this.#random), socket: unopened, cancel: () => {} };
    this.#places.set(link.name, place);
    place.socket = this.#open(place);
    this.#serve(place);
  }

  #open(place: Place<Part>): MdnsSocket {
    const { environment, network } = this.#options;
    const { link } = place;
    const isCurrent = (): boolean => this.#has(place) && place.socket === socket;
    const socket = network.open(link, {
      received: (message, from, own) => {
        if (!isCurrent()) return;
        place.part.receive(message, from, environment.clock.now(), own);
        this.#serve(place);
      },
      failed: (error) => {
        if (!isCurrent()) return;
        if (!this.#failed.has(link.name))
          environment.log.warn('mDNS does not work on an interface', { link: link.name, error: error.message });
        this.#failed.add(link.name);
        this.#forget(place);
      },
    });
    return socket;
  }

  /** Sends the part's messages, and returns at its next timeout. */
  #serve(place: Place<Part>): void {
    if (!this.#has(place)) return;
    const { link, part } = place;
    const { clock } = this.#options.environment;
    part.handleTimeout(clock.now());
    for (let out = part.transmit(); out !== null; out = part.transmit()) place.socket.send(out.message, out.to);
    for (let event = part.nextEvent(); event !== null; event = part.nextEvent()) this.#options.event(event, link);
    // A listener of an event may have closed everything.
    if (!this.#has(place)) return;
    place.cancel();
    place.cancel = clock.schedule(part.nextTimeout() - clock.now(), () => this.#serve(place));
  }

  async #leave(place: Place<Part>, lastWords?: (part: Part) => DnsMessage | null): Promise<void> {
    this.#forget(place);
    const message = lastWords?.(place.part) ?? null;
    if (message !== null) place.socket.send(message, null);
    await place.socket.close();
  }

  #has(place: Place<Part>): boolean {
    return this.#places.get(place.link.name) === place;
  }

  #forget({ link, cancel }: Place<Part>): void {
    cancel();
    this.#places.delete(link.name);
    this.#options.ended?.(link);
  }

  readonly #random = (): number => {
    const [high = 0, low = 0] = this.#options.environment.crypto.randomBytes(2);
    return (256 * high + low) / 0x10000;
  };
}
