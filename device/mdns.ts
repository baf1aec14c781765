/** Announces the device on the local network (PROTOCOL.md §11): one responder per link. */

import type { Environment } from '../platform/environment.ts';
import type { MdnsLink, MdnsNetwork } from '../platform/mdns.ts';
import { check, text } from '../protocol/arguments.ts';
import { checkSubtype, type MdnsConflict, Responder, serviceRecords, TxtItems } from '../protocol/discovery/index.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { MdnsLinks } from '../runtime/discovery/index.ts';

/** Most subtypes of a device. */
const MAX_SUBTYPES = 32;
/** Keys reserved for the device itself. */
const OWN_KEYS = ['productid', 'deviceid'];
/** TXT key of the friendly name (PROTOCOL.md §11). */
const FRIENDLY_NAME = 'fn';
/** Bytes of a TXT item besides `fn=`. */
const MAX_FRIENDLY_NAME = 252;

/** The ids to announce, and the UDP port of the local socket. */
export interface Announcement {
  readonly productId: string;
  readonly deviceId: string;
  readonly port: number;
}

/** Announces a device by multicast DNS. */
export class Announcer {
  readonly #environment: Environment;
  readonly #subtypes = new Set<string>();
  readonly #custom = new TxtItems();
  readonly #own = new TxtItems();
  #links: MdnsLinks<Responder, MdnsConflict> | null = null;
  #enabled = false;
  #announced: Announcement | null = null;

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

  /** Sets a TXT item. Announced at once if it runs. @throws LocalError INVALID_ARGUMENT, STRING_TOO_LONG */
  addTxtItem(key: string, value: string): void {
    check('the key of a TXT item', key, text);
    const name = key.toLowerCase();
    if (OWN_KEYS.includes(name)) throw new LocalError('INVALID_ARGUMENT', `the TXT item ${key} is the device's own`);
    (name === FRIENDLY_NAME ? this.#own : this.#custom).set(key, value);
    this.#links?.each((responder, link) => this.#publish(responder, link));
  }

  /** Sets the TXT item `fn`, cut to 252 bytes. Announced at once if it runs. */
  setFriendlyName(name: string): void {
    const bytes = new TextEncoder().encode(name);
    let end = Math.min(bytes.length, MAX_FRIENDLY_NAME);
    // Do not cut in the middle of a character.
    while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end--;
    this.addTxtItem(FRIENDLY_NAME, new TextDecoder().decode(bytes.subarray(0, end)));
  }

  /** Starts to announce, if enabled. */
  start({ productId, deviceId, port }: Announcement): void {
    if (!this.#enabled) return;
    this.#announced = { productId, deviceId, port };
    this.#own.set('productid', productId);
    this.#own.set('deviceid', deviceId);
    this.#links = new MdnsLinks({
      environment: this.#environment,
      network: this.#network(),
      begin: (link, random) => new Responder(this.#records(link), random, this.#environment.clock.now()),
      changed: (responder, link) => this.#publish(responder, link),
      event: ({ from }, link) =>
        this.#environment.log.warn('mDNS: another host announces the ids of this device', { address: from.address, link: link.name }),
    });
    this.#links.start();
  }

  /** Withdraws all announcements; resolves when that has been sent. */
  async close(): Promise<void> {
    const links = this.#links;
    this.#links = null;
    await links?.close((responder) => responder.goodbye());
  }

  #network(): MdnsNetwork {
    const { mdns } = this.#environment;
    if (mdns === undefined) throw new LocalError('NOT_IMPLEMENTED', 'there is no multicast DNS where this device runs');
    return mdns;
  }

  #publish(responder: Responder, link: MdnsLink): void {
    responder.setRecords(this.#records(link), this.#environment.clock.now());
  }

  #records({ addresses }: MdnsLink) {
    const { productId, deviceId, port } = this.#announced!;
    const txt = [...this.#own.strings(), ...this.#custom.strings()];
    return serviceRecords({ name: `${productId}-${deviceId}`, port, subtypes: [...this.#subtypes], txt, addresses });
  }
}
