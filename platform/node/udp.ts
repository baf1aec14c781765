/**
 * UDP in Node: one {@link BoundSocket} over up to two `dgram` sockets (family-socket.ts), one per address family, on
 * the same port.
 *
 * Two sockets rather than one dual-stack IPv6 socket: this works on hosts without IPv6 or with IPv6 disabled, IPv4
 * peers appear in their own notation, and the IPv4 path costs nothing extra.
 *
 * From here a datagram reaches the application in these steps:
 *
 * 1. `runtime/driver.ts` passes it to the endpoint, whose `demultiplex.ts` finds the connection by the table index in
 *    the connection id. After each datagram from Node, `native/receiver.ts` reads those queued behind it in batches.
 * 2. `bindings/` copies it once into the receive slot, so this socket may reuse its memory then.
 * 3. `core-as/connection/receive.ts` decrypts in the slot, and `frames.ts` acts on each frame: `recovery/` for ACKs,
 *    `streams/receive.ts` for stream bytes, `streams/credit.ts` for flow control.
 * 4. `core-as/connection/events.ts` reports what became readable; connection and session pass it to the application.
 * 5. A reader takes the bytes with one copy out of linear memory. A message is passed to `protocol/coap/exchanges.ts`.
 *
 * At the base station a routed packet takes a shorter way: driver → `protocol/relay/route-table.ts` → the other end's
 * socket, in place. It never reaches the wasm.
 */

import { canonicalAddress } from '../../protocol/address.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { BindOptions, BoundSocket } from '../environment.ts';
import { PathTable, UdpPath } from '../udp-path.ts';
import { type Family, FamilySocket, type FamilySocketSettings } from './family-socket.ts';
import { ownInterfaces, smallLinkMtu } from './interfaces.ts';
import { bindError, isMissingFamily } from './udp-errors.ts';

/** Port 0: most attempts with another number when the one chosen for IPv4 is taken for IPv6. */
const PORT_ATTEMPTS = 16;

/** Settings of all sockets of an environment. */
export interface UdpSettings extends FamilySocketSettings {
  /** MTU of the links as stated by the operator. */
  readonly linkMtu?: number;
}

/** Opens the sockets. Errors as {@link Network.bind}. @param index of the new socket. */
export async function bindUdp(options: BindOptions, index: number, settings: UdpSettings): Promise<BoundSocket> {
  const families = checkedFamilies(options);
  for (let attempt = 1; ; attempt++) {
    const socket = new NodeUdpSocket(options, index, settings);
    try {
      await socket.open(families);
      return socket;
    } catch (error) {
      socket.close();
      const again = options.port === 0 && attempt < PORT_ATTEMPTS && (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!again) throw bindError(error, options);
    }
  }
}

class NodeUdpSocket implements BoundSocket {
  readonly index: number;
  port = 0;
  readonly #options: BindOptions;
  readonly #settings: UdpSettings;
  readonly #paths: PathTable;
  #v4: FamilySocket | undefined;
  #v6: FamilySocket | undefined;
  #closed = false;

  constructor(options: BindOptions, index: number, settings: UdpSettings) {
    const near = options.local === true ? ownInterfaces() : null;
    const linkMtu = settings.linkMtu ?? smallLinkMtu();
    this.index = index;
    this.#options = options;
    this.#settings = settings;
    this.#paths = new PathTable((address, port) => new UdpPath(index, address, port, near, linkMtu));
  }

  /**
   * IPv4 first; IPv6 then gets the same port. A family that this host lacks is skipped, unless it is the only one
   * requested.
   */
  async open(families: readonly Family[]): Promise<void> {
    this.port = this.#options.port;
    for (const family of families) {
      const socket = new FamilySocket(family, this.#options.bulk === true, this.#message, this.#settings, this.#options.unreachable);
      if (family === 'udp4') this.#v4 = socket;
      else this.#v6 = socket;
      try {
        this.port = await socket.bind(this.port, this.#options.host);
      } catch (error) {
        if (families.length === 1 || !isMissingFamily(error)) throw error;
        if (family === 'udp4') this.#v4 = undefined;
        else this.#v6 = undefined;
        socket.close();
      }
    }
    const missing = this.#v4 === undefined && this.#v6 === undefined;
    if (missing) throw new LocalError('INVALID_STATE', 'this host has neither IPv4 nor IPv6');
  }

  /** The smaller of both families. */
  get receiveBuffer(): number {
    return Math.min(this.#v4?.receiveBuffer ?? Number.POSITIVE_INFINITY, this.#v6?.receiveBuffer ?? Number.POSITIVE_INFINITY);
  }

  path(address: string, port: number): Path {
    return this.#paths.pathTo(address, port);
  }

  send(buffer: Uint8Array, offset: number, length: number, path: Path, released: (offset: number) => void): void {
    const socket = this.#socketFor(path);
    if (socket === undefined) process.nextTick(released, offset);
    else socket.send(buffer, offset, length, path.address, path.port, released);
  }

  sendWithHopLimit(datagram: Uint8Array, path: Path, hopLimit: number): void {
    if (!Number.isInteger(hopLimit) || hopLimit < 1 || hopLimit > 255) return;
    this.#socketFor(path)?.sendWithHopLimit(datagram, path.address, path.port, hopLimit);
  }

  unref(): void {
    this.#v4?.unref();
    this.#v6?.unref();
  }

  close(): void {
    this.#closed = true;
    this.#v4?.close();
    this.#v6?.close();
  }

  /** Undefined when it is closed, or the host lacks the family. */
  #socketFor(path: Path): FamilySocket | undefined {
    if (this.#closed) return undefined;
    return path.address.includes(':') ? this.#v6 : this.#v4;
  }

  readonly #message = (datagram: Uint8Array, address: string, port: number): void => {
    // Port 0 can only be forged: nothing can be sent there, and `dgram` throws for it.
    if (!this.#closed && port !== 0) this.#options.receive(datagram, this.#paths.path(address, port));
  };
}

function checkedFamilies({ port, host }: BindOptions): Family[] {
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new LocalError('INVALID_ARGUMENT', `${port} is not a port number: use 1 to 65535, or 0 for a free one`);
  if (host === undefined) return ['udp4', 'udp6'];
  const address = canonicalAddress(host);
  if (address === null) throw new LocalError('INVALID_ARGUMENT', `${host} is not a numeric IP address to listen on`);
  return [address.includes(':') ? 'udp6' : 'udp4'];
}
