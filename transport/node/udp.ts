/**
 * UDP in Node: one {@link UdpSocket} over up to two `dgram` sockets, one per address family, on the same port.
 *
 * Two sockets rather than one dual-stack IPv6 socket: it works on hosts without IPv6 and with it switched off, IPv4 peers appear in their own
 * notation, and the IPv4 path costs nothing extra. What a datagram costs here is Node's: nothing is awaited and nothing looked up.
 *
 * Sends complete in the order they were made, which is what libuv guarantees for one socket, so a ring of offsets per socket
 * replaces a closure per packet.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { canonicalAddress } from '../address.ts';
import type { BindOptions, Log, UdpSocket } from '../environment.ts';
import { PathTable, UdpPath } from '../udp-path.ts';
import { ownInterfaces, smallLinkMtu } from './interfaces.ts';
import { bindError, isMissingFamily } from './udp-errors.ts';

type Family = 'udp4' | 'udp6';

/** Asked for; the system may grant less (`net.core.rmem_max`). Arrivals of one busy event loop turn must fit. */
const RECEIVE_BUFFER = 8 * 1024 * 1024;
/** Port 0: how often another number is tried when the one IPv4 got is taken for IPv6. */
const PORT_ATTEMPTS = 16;

/** What holds for all sockets of an environment. */
export interface UdpSettings {
  readonly log: Log;
  /** MTU of the links as stated. */
  readonly linkMtu?: number;
}

/** Opens the sockets. Errors as {@link Network.bind}. @param index of the new socket. */
export async function bindUdp(options: BindOptions, index: number, settings: UdpSettings): Promise<UdpSocket> {
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

class NodeUdpSocket implements UdpSocket {
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

  /** IPv4 first; IPv6 then gets the same port. A family this host does not have is left out, unless it is the only one asked for. */
  async open(families: readonly Family[]): Promise<void> {
    this.port = this.#options.port;
    for (const family of families) {
      const socket = new FamilySocket(family, this.#message, this.#settings.log);
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

  path(address: string, port: number): Path {
    return this.#paths.pathTo(address, port);
  }

  send(buffer: Uint8Array, offset: number, length: number, path: Path, released: (offset: number) => void): void {
    const socket = path.address.includes(':') ? this.#v6 : this.#v4;
    if (socket === undefined || this.#closed) process.nextTick(released, offset);
    else socket.send(buffer, offset, length, path.address, path.port, released);
  }

  close(): void {
    this.#closed = true;
    this.#v4?.close();
    this.#v6?.close();
  }

  readonly #message = (datagram: Buffer, from: RemoteInfo): void => {
    // Port 0 can only be made up: nothing can be sent there, and `dgram` throws when asked to.
    if (!this.#closed && from.port !== 0) this.#options.receive(datagram, this.#paths.path(from.address, from.port));
  };
}

/** One `dgram` socket and the packets it has not yet given back. */
class FamilySocket {
  readonly #socket: Socket;
  readonly #log: Log;
  #closed = false;
  /** Offset and callback of each send, oldest at `#first`; a ring whose size is a power of two. */
  #offsets = new Float64Array(64);
  #callbacks = new Array<(offset: number) => void>(64);
  #first = 0;
  #count = 0;

  constructor(family: Family, message: (datagram: Buffer, from: RemoteInfo) => void, log: Log) {
    this.#socket = createSocket({ type: family, ipv6Only: family === 'udp6', lookup: numericLookup });
    this.#socket.on('message', message);
    this.#log = log;
  }

  /** @returns the port. */
  bind(port: number, host: string | undefined): Promise<number> {
    const socket = this.#socket;
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.bind({ port, ...(host === undefined ? {} : { address: host }), exclusive: true }, () => {
        socket.removeListener('error', reject);
        socket.on('error', (error) => this.#log.warn('UDP socket', { error: error.message }));
        this.#enlargeBuffer();
        resolve(socket.address().port);
      });
    });
  }

  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: (offset: number) => void): void {
    this.#push(offset, released);
    this.#socket.send(buffer, offset, length, port, address, this.#sent);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.removeAllListeners('error').on('error', () => {});
    this.#socket.close();
  }

  #push(offset: number, released: (offset: number) => void): void {
    if (this.#count === this.#offsets.length) this.#grow();
    const slot = (this.#first + this.#count++) & (this.#offsets.length - 1);
    this.#offsets[slot] = offset;
    this.#callbacks[slot] = released;
  }

  /** The oldest packet has left, or was refused by the system: the address may be unreachable. Either way it is UDP's loss. */
  readonly #sent = (): void => {
    const slot = this.#first;
    this.#first = (slot + 1) & (this.#offsets.length - 1);
    this.#count--;
    this.#callbacks[slot]!(this.#offsets[slot]!);
  };

  #grow(): void {
    const size = this.#offsets.length;
    const order = Array.from({ length: size }, (_, i) => (this.#first + i) & (size - 1));
    const offsets = new Float64Array(2 * size);
    offsets.set(order.map((slot) => this.#offsets[slot]!));
    this.#callbacks = order.map((slot) => this.#callbacks[slot]!);
    this.#callbacks.length = 2 * size;
    this.#offsets = offsets;
    this.#first = 0;
  }

  #enlargeBuffer(): void {
    try {
      this.#socket.setRecvBufferSize(RECEIVE_BUFFER);
      this.#log.debug('UDP receive buffer', { asked: RECEIVE_BUFFER, granted: this.#socket.getRecvBufferSize() });
    } catch (error) {
      this.#log.debug('UDP receive buffer stays at its default', { error: (error as Error).message });
    }
  }
}

/** `dgram` resolves each destination anew and by default asynchronously; ours are numeric already. */
function numericLookup(address: string, options: number | object, callback: (error: null, address: string, family: number) => void): void {
  const family = typeof options === 'number' ? options : address.includes(':') ? 6 : 4;
  callback(null, address, family);
}

function checkedFamilies({ port, host }: BindOptions): Family[] {
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new LocalError('INVALID_ARGUMENT', `${port} is not a port number: use 1 to 65535, or 0 for a free one`);
  if (host === undefined) return ['udp4', 'udp6'];
  const address = canonicalAddress(host);
  if (address === null) throw new LocalError('INVALID_ARGUMENT', `${host} is not a numeric IP address to listen on`);
  return [address.includes(':') ? 'udp6' : 'udp4'];
}
