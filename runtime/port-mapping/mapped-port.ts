/** The mapping of our port at one gateway: its socket, its timer, and the sans-IO `PortMapping` between them. */

import type { BoundSocket, Cancel, Environment } from '../../platform/environment.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { NONCE_LENGTH, PCP_PORT, PortMapping, type PortMappingEvent } from '../../protocol/port-mapping/index.ts';

export interface MappedPortOptions {
  readonly environment: Pick<Environment, 'clock' | 'crypto' | 'network' | 'log'>;
  /** Numeric, with zone. */
  readonly gateway: string;
  /** Our address as the gateway sees it; null if unknown. */
  readonly own: string | null;
  readonly internalPort: number;
  /** Receives the address that the gateway states, null when it is gone. */
  readonly onMapped: (mapped: SocketAddress | null) => void;
}

export class MappedPort {
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
