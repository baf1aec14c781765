/** A UDP socket of a simulated host. */

import type { BindOptions, BoundSocket } from '../platform/environment.ts';
import { PathTable, UdpPath } from '../platform/udp-path.ts';
import type { Path } from '../protocol/path.ts';

/** What the host passes to a socket. */
export interface SimulatedSocketOptions {
  index: number;
  port: number;
  host: string | undefined;
  near: ((address: string) => boolean) | null;
  linkMtu: number | undefined;
  receive: BindOptions['receive'];
  transmit: (data: Uint8Array, path: Path, hopLimit?: number) => void;
  defer: (run: () => void) => void;
  closed: () => void;
}

const SPOILT = 0xdb;

/** One bound UDP port of a simulated host. */
export class SimulatedSocket implements BoundSocket {
  readonly index: number;
  readonly port: number;
  /** Undefined: every address of the host. */
  readonly host: string | undefined;
  readonly #options: SimulatedSocketOptions;
  readonly #paths: PathTable;
  #sent: { offset: number; released: (offset: number) => void }[] = [];
  #closed = false;

  constructor(options: SimulatedSocketOptions) {
    this.index = options.index;
    this.port = options.port;
    this.host = options.host;
    this.#options = options;
    this.#paths = new PathTable((address, port) => new UdpPath(options.index, address, port, options.near, options.linkMtu));
  }

  path(address: string, port: number): Path {
    return this.#paths.pathTo(address, port);
  }

  /** Copies at once; releases together with everything sent in the same instant. */
  send(buffer: Uint8Array, offset: number, length: number, path: Path, released: (offset: number) => void): void {
    if (!this.#closed) this.#options.transmit(buffer.slice(offset, offset + length), path);
    if (this.#sent.length === 0) this.#options.defer(this.#release);
    this.#sent.push({ offset, released });
  }

  /** Sends at once; `topology.ts` decides where its hops end. */
  sendWithHopLimit(datagram: Uint8Array, path: Path, hopLimit: number): void {
    if (!this.#closed) this.#options.transmit(datagram.slice(), path, hopLimit);
  }

  /** Delivers a datagram, then spoils it, which exposes a receiver that keeps the lent bytes (BindOptions.receive). */
  deliver(data: Uint8Array, address: string, port: number): void {
    if (!this.#closed) this.#options.receive(data, this.#paths.path(address, port));
    data.fill(SPOILT);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#options.closed();
  }

  readonly #release = (): void => {
    const sent = this.#sent;
    this.#sent = [];
    for (const { offset, released } of sent) released(offset);
  };
}
