/**
 * Maps the port of a socket at the gateways of this host, so that peers on the Internet reach it, by PCP or NAT-PMP.
 *
 * A gateway can lie, and one behind another NAT maps in vain: only a global address counts as mapped. It is
 * only a candidate: checks decide whether it works.
 */

import type { BoundSocket, Cancel, Environment } from '../../platform/environment.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { NONCE_LENGTH, PCP_PORT, PortMapping, type PortMappingEvent } from '../../protocol/port-mapping/index.ts';
import { addressKind } from '../../protocol/special-addresses.ts';
import { type Gateway, gatewaysWithOwn } from './gateways.ts';

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

interface MappedPortOptions {
  readonly environment: Pick<Environment, 'clock' | 'crypto' | 'network' | 'log'>;
  /** Numeric, with zone. */
  readonly gateway: string;
  /** Our address as the gateway sees it; null if unknown. */
  readonly own: string | null;
  readonly internalPort: number;
  /** Receives the address that the gateway states, null when it is gone. */
  readonly onMapped: (mapped: SocketAddress | null) => void;
}

/** The mapping of our port at one gateway: its socket, its timer, and the sans-IO `PortMapping` between them. */
class MappedPort {
  readonly #options: MappedPortOptions;
  readonly #mapping: PortMapping;
  #socket: BoundSocket | undefined;
  #path: Path | undefined;
  #cancelTimer: Cancel | undefined;
  #closed: (() => void) | undefined;

  constructor(options: MappedPortOptions) {
    const { environment, own, internalPort } = options;
    this.#options = options;
    this.#mapping = new PortMapping(
      { internalPort, client: own === null ? null : parseAddress(own), nonce: environment.crypto.randomBytes(NONCE_LENGTH) },
      environment.clock.now(),
    );
  }

  /** Opens the socket and asks. @returns false when it could not be opened: nothing is mapped */
  async start(): Promise<boolean> {
    const { environment, gateway, own } = this.#options;
    try {
      const host = own === null ? {} : { host: own };
      const socket = await environment.network.bind({ port: 0, ...host, receive: this.#receive });
      if (this.#closed !== undefined) {
        socket.close();
        return true;
      }
      this.#socket = socket;
      this.#path = socket.path(gateway, PCP_PORT);
    } catch (error) {
      environment.log.debug('no port mapping', { gateway, error: (error as Error).message });
      return false;
    }
    this.#serve();
    return true;
  }

  /** Requests the mapping's deletion; resolves when the gateway has confirmed it, or after a second. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#closed = resolve;
      if (this.#socket === undefined) {
        resolve();
        return;
      }
      this.#mapping.close(this.#options.environment.clock.now());
      this.#serve();
    });
  }

  readonly #receive = (datagram: Uint8Array, path: Path): void => {
    // Any host on our network may send here: only the gateway counts.
    if (path !== this.#path) return;
    this.#mapping.receive(datagram, this.#options.environment.clock.now());
    this.#serve();
  };

  readonly #serve = (): void => {
    const socket = this.#socket;
    if (socket === undefined) return;
    const { clock } = this.#options.environment;
    const now = clock.now();
    if (this.#mapping.nextTimeout() <= now) this.#mapping.handleTimeout(now);
    for (let request = this.#mapping.transmit(); request !== null; request = this.#mapping.transmit())
      socket.send(request, 0, request.length, this.#path!, () => {});
    for (let event = this.#mapping.nextEvent(); event !== null; event = this.#mapping.nextEvent()) this.#handle(event);
    this.#cancelTimer?.();
    this.#cancelTimer = clock.schedule(this.#mapping.nextTimeout() - now, this.#serve);
  };

  #handle(event: PortMappingEvent): void {
    const { gateway, onMapped, environment } = this.#options;
    if (event.kind === 'mapped') onMapped({ address: formatAddress(event.address), port: event.port });
    else if (event.kind === 'lost') onMapped(null);
    else if (event.kind === 'refused') environment.log.debug('no port mapping', { gateway, reason: event.reason });
    else {
      this.#socket?.close();
      this.#socket = undefined;
      this.#closed?.();
    }
  }
}
