/**
 * A host with three uplinks, of which one is up at a time: a cable at home, the Wi-Fi of another house, and a phone.
 * Each leads to another network, with another NAT and another address outside.
 */
import type { Namespace } from '../namespaces.ts';
import { connect, type Home, type Internet, type Side, STATION_ADDRESS } from './internet.ts';
import { rulesOf } from './nat-boxes.ts';

export const uplinks = ['cable', 'wifi', 'phone'] as const;
export type Uplink = (typeof uplinks)[number];

/** A sequence with every change from one to another, and each going down and up again. It begins with the cable. */
export const SWITCHES: readonly Uplink[] = ['cable', 'wifi', 'wifi', 'phone', 'phone', 'cable', 'phone', 'wifi', 'cable'];

/** Addresses of the host, and of the router there. */
const DEVICES: Readonly<Record<Uplink, readonly [device: string, router: string]>> = {
  cable: ['eth0', '192.168.1.1'],
  wifi: ['wlan0', '192.168.178.1'],
  phone: ['usb0', '172.20.10.1'],
};

/**
 * - `cable`: endpoint-independent mapping, a filter by address.
 * - `wifi`: masquerade and a firewall: a filter by address and port.
 * - `phone`: masquerade, and the NAT of a provider with a random port for each destination.
 */
export class Mobile {
  readonly host: Namespace;
  #now: Uplink = 'cable';

  constructor(internet: Internet, side: Side) {
    const cable = internet.home(side, 'address');
    this.host = cable.host;
    this.#join('wifi', internet.home(side, 'port'), '192.168.178.10/24');
    const phone = internet.home(side, 'double');
    const outside = { outside: phone.outside, inside: '100.64.0.2', station: [STATION_ADDRESS] };
    phone.boxes.at(-1)!.nft(`flush ruleset\n${rulesOf('random', outside)}`);
    this.#join('phone', phone, '172.20.10.2/28');
  }

  get now(): Uplink {
    return this.#now;
  }

  /** No uplink is left. */
  leave(): void {
    this.host.ip(`link set dev ${DEVICES[this.#now][0]} down`);
  }

  /** Switches to another uplink, or brings back the last one. The previous one goes down first. */
  use(uplink: Uplink): void {
    this.leave();
    this.#now = uplink;
    const [device, router] = DEVICES[uplink];
    this.host.ip(`link set dev ${device} up\nroute add default via ${router} dev ${device}`);
  }

  #join(uplink: Uplink, { boxes: [box] }: Home, address: string): void {
    const [device, router] = DEVICES[uplink];
    connect([this.host, device, [address]], [box!, 'mobile', []]);
    box!.ip(`link set dev mobile master lan\naddress add ${router}/${address.split('/')[1]} dev lan`);
    this.host.ip(`link set dev ${device} down`);
  }
}
