/**
 * Maps the port of a socket at the gateways of this host, so that peers on the Internet reach it, by PCP or NAT-PMP.
 *
 * A gateway can lie, and one behind another NAT maps in vain: only a global address counts as mapped. It is
 * only a candidate: checks decide whether it works.
 */

import type { Cancel, Environment } from '../../platform/environment.ts';
import { parseAddress } from '../../protocol/address.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import { addressKind } from '../../protocol/special-addresses.ts';
import { type Gateway, gatewaysWithOwn } from './gateways.ts';
import { MappedPort } from './mapped-port.ts';

/** ms between two checks for gateways: a network may come up late, or change. */
const LOOK_AGAIN = 30_000;

export interface PortMapperOptions {
  readonly environment: Pick<Environment, 'clock' | 'crypto' | 'network' | 'log'>;
  /** Port of the socket that peers should reach. */
  readonly port: number;
}

export class PortMapper {
  readonly #options: PortMapperOptions;
  readonly #ports = new Map<string, MappedPort>();
  /** By gateway. */
  readonly #mapped = new Map<string, SocketAddress>();
  #started = false;
  #cancelLook: Cancel | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: PortMapperOptions) {
    this.#options = options;
  }

  /** Port of the socket. */
  get port(): number {
    return this.#options.port;
  }

  /** The addresses at which the port is currently mapped. */
  get mapped(): readonly SocketAddress[] {
    return [...new Map([...this.#mapped.values()].map((mapped) => [`${mapped.address} ${mapped.port}`, mapped])).values()];
  }

  /** Asks the gateways, and continues until it is closed. Safe to call twice. */
  start(): void {
    if (this.#started || this.#closing !== undefined) return;
    this.#started = true;
    this.refresh();
  }

  /** Checks at once for gateways, for a caller that knows of a change. Forgets lost ones, asks new ones. */
  refresh(): void {
    if (!this.#started || this.#closing !== undefined) return;
    this.#cancelLook?.();
    this.#cancelLook = this.#options.environment.clock.schedule(LOOK_AGAIN, () => this.refresh());
    const gateways = new Map(
      gatewaysWithOwn(this.#options.environment.network).map((gateway) => [`${gateway.address} ${gateway.own}`, gateway]),
    );
    for (const [key, port] of [...this.#ports]) if (!gateways.has(key)) this.#forget(key, port);
    for (const [key, gateway] of gateways) if (!this.#ports.has(key)) this.#add(key, gateway);
  }

  /** Requests the mappings' deletion, as far as the gateways answer within a second. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#cancelLook?.();
    await Promise.all([...this.#ports.values()].map((port) => port.close()));
    this.#ports.clear();
    this.#mapped.clear();
  }

  #add(key: string, { address: gateway, own }: Gateway): void {
    const { environment, port: internalPort } = this.#options;
    const onMapped = (stated: SocketAddress | null): void => this.#set(key, stated);
    const port = new MappedPort({ environment, gateway, own, internalPort, onMapped });
    this.#ports.set(key, port);
    void port.start().then((isOpen) => {
      // The next check tries again.
      if (!isOpen && this.#ports.get(key) === port) this.#ports.delete(key);
    });
  }

  #forget(key: string, port: MappedPort): void {
    this.#ports.delete(key);
    void port.close();
    this.#set(key, null);
  }

  #set(key: string, stated: SocketAddress | null): void {
    if (this.#closing !== undefined) return;
    if (stated !== null && this.#isUsable(key, stated)) this.#mapped.set(key, stated);
    else this.#mapped.delete(key);
  }

  #isUsable(gateway: string, { address, port }: SocketAddress): boolean {
    if (addressKind(parseAddress(address)!) === 'global') return true;
    this.#options.environment.log.debug('a gateway maps to an address that is not of the Internet', { gateway, address, port });
    return false;
  }
}
