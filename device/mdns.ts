/**
 * Announces the device on the local network (PROTOCOL.md §11): one responder for each link. Links are looked for every few seconds; one that
 * cannot be used is tried again and stops no other.
 */

import { checkSubtype, type MdnsConflict, Responder, serviceRecords, TxtItems } from '../protocol/discovery/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { Cancel, Environment } from '../transport/environment.ts';
import type { MdnsLink, MdnsNetwork, MdnsSocket } from '../transport/mdns.ts';

/** ms between two looks at the links. */
const POLL = 5_000;
/** A device belongs to no more groups than that. */
const MAX_SUBTYPES = 32;
/** Keys that are the device's own. */
const OWN_KEYS = ['productid', 'deviceid'];
/** TXT key of the friendly name (reference §3). */
const FRIENDLY_NAME = 'fn';
/** Bytes of a TXT item besides `fn=`. */
const MAX_FRIENDLY_NAME = 252;

/** Whom to announce, and the UDP port of its local socket. */
export interface Announced {
  readonly productId: string;
  readonly deviceId: string;
  readonly port: number;
}

interface Place {
  link: MdnsLink;
  readonly responder: Responder;
  readonly socket: MdnsSocket;
  cancel: Cancel;
}

/** The device's part in multicast DNS. */
export class Announcer {
  readonly #environment: Environment;
  readonly #subtypes = new Set<string>();
  readonly #custom = new TxtItems();
  readonly #own = new TxtItems();
  readonly #places = new Map<string, Place>();
  /** Links that failed and were told of. */
  readonly #failed = new Set<string>();
  #enabled = false;
  #announced: Announced | null = null;
  #cancelPoll: Cancel = () => {};

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** @throws LocalError NOT_IMPLEMENTED where the environment has no multicast DNS */
  enable(): void {
    this.#network();
    this.#enabled = true;
  }

  /** @throws LocalError INVALID_ARGUMENT, also above 32 subtypes */
  addSubtype(subtype: string): void {
    checkSubtype(subtype);
    if (!this.#subtypes.has(subtype) && this.#subtypes.size === MAX_SUBTYPES)
      throw new LocalError('INVALID_ARGUMENT', `a device has at most ${MAX_SUBTYPES} mDNS subtypes`);
    this.#subtypes.add(subtype);
  }

  /** Announced at once when it runs. @throws LocalError INVALID_ARGUMENT, STRING_TOO_LONG */
  addTxtItem(key: string, value: string): void {
    const name = String(key).toLowerCase();
    if (OWN_KEYS.includes(name)) throw new LocalError('INVALID_ARGUMENT', `the TXT item ${key} is the device's own`);
    (name === FRIENDLY_NAME ? this.#own : this.#custom).set(key, value);
    this.#republish();
  }

  /** TXT item `fn`, cut to 252 bytes. Announced at once when it runs. */
  setFriendlyName(name: string): void {
    const bytes = new TextEncoder().encode(name);
    let end = Math.min(bytes.length, MAX_FRIENDLY_NAME);
    // Not in the middle of a character.
    while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
    this.addTxtItem(FRIENDLY_NAME, new TextDecoder().decode(bytes.subarray(0, end)));
  }

  /** Begins to announce, if it is enabled. */
  start({ productId, deviceId, port }: Announced): void {
    if (!this.#enabled) return;
    this.#announced = { productId, deviceId, port };
    this.#own.set('productid', productId);
    this.#own.set('deviceid', deviceId);
    this.#poll();
  }

  /** Takes everything back; resolves when that has left. */
  async close(): Promise<void> {
    this.#announced = null;
    this.#cancelPoll();
    await Promise.all([...this.#places.keys()].map((name) => this.#leave(name)));
  }

  #network(): MdnsNetwork {
    const { mdns } = this.#environment;
    if (mdns === undefined) throw new LocalError('NOT_IMPLEMENTED', 'there is no multicast DNS where this device runs');
    return mdns;
  }

  #poll(): void {
    const { clock, log } = this.#environment;
    this.#cancelPoll = clock.schedule(POLL, () => this.#poll());
    try {
      const links = new Map(
        this.#network()
          .links()
          .map((link) => [link.name, link]),
      );
      for (const name of [...this.#places.keys()]) if (!links.has(name)) void this.#leave(name);
      for (const name of this.#failed) if (!links.has(name)) this.#failed.delete(name);
      for (const link of links.values()) this.#see(link);
    } catch (error) {
      log.warn('mDNS: the interfaces of this host cannot be read', { error: messageOf(error) });
    }
  }

  #see(link: MdnsLink): void {
    const place = this.#places.get(link.name);
    if (place === undefined) this.#join(link);
    else if (place.link.addresses.join() !== link.addresses.join()) {
      place.link = link;
      this.#publish(place);
    }
  }

  #join(link: MdnsLink): void {
    const { clock, log } = this.#environment;
    const responder = new Responder(this.#records(link), this.#random, clock.now());
    const socket = this.#network().open(link, {
      received: (message, from, own) => {
        responder.receive(message, from, clock.now(), own);
        this.#serve(place);
      },
      failed: (error) => {
        if (!this.#failed.has(link.name)) log.warn('mDNS does not work on an interface', { link: link.name, error: error.message });
        this.#failed.add(link.name);
        this.#forget(link.name);
      },
    });
    const place: Place = { link, responder, socket, cancel: () => {} };
    this.#places.set(link.name, place);
    this.#serve(place);
  }

  /** Sends what the responder has to send, and comes back at its next timeout. */
  #serve(place: Place): void {
    if (this.#places.get(place.link.name) !== place) return;
    const { clock } = this.#environment;
    const { responder, socket } = place;
    responder.handleTimeout(clock.now());
    for (let event = responder.nextEvent(); event !== null; event = responder.nextEvent()) this.#conflict(place, event);
    for (let out = responder.transmit(); out !== null; out = responder.transmit()) socket.send(out.message, out.to);
    place.cancel();
    place.cancel = clock.schedule(responder.nextTimeout() - clock.now(), () => this.#serve(place));
  }

  #conflict({ link }: Place, { from }: MdnsConflict): void {
    this.#environment.log.warn('mDNS: another host announces the ids of this device', { address: from.address, link: link.name });
  }

  #republish(): void {
    if (this.#announced !== null) for (const place of this.#places.values()) this.#publish(place);
  }

  #publish(place: Place): void {
    place.responder.setRecords(this.#records(place.link), this.#environment.clock.now());
    this.#serve(place);
  }

  async #leave(name: string): Promise<void> {
    const place = this.#forget(name);
    if (place === undefined) return;
    const goodbye = place.responder.goodbye();
    if (goodbye !== null) place.socket.send(goodbye, null);
    await place.socket.close();
  }

  #forget(name: string): Place | undefined {
    const place = this.#places.get(name);
    place?.cancel();
    this.#places.delete(name);
    return place;
  }

  #records({ addresses }: MdnsLink) {
    const { productId, deviceId, port } = this.#announced!;
    const txt = [...this.#own.strings(), ...this.#custom.strings()];
    return serviceRecords({ name: `${productId}-${deviceId}`, port, subtypes: [...this.#subtypes], txt, addresses });
  }

  readonly #random = (): number => {
    const [high = 0, low = 0] = this.#environment.crypto.randomBytes(2);
    return (256 * high + low) / 0x10000;
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
