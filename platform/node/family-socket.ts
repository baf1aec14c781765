/**
 * The `dgram` socket of one address family.
 *
 * Once it has carried `systemCallsAfter` datagrams it switches to its own system calls where they are available
 * (native/). Loading them takes some 20 ms and 10 MB, which a socket with little to do avoids.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { Log } from '../environment.ts';
import { DgramSender, type Unreachable } from './dgram-sender.ts';
import { descriptorOf } from './native/descriptor.ts';
import { type Deliver, NativeReceiver } from './native/receiver.ts';
import { NativeSender } from './native/sender.ts';
import type { SystemCalls } from './native/system-calls.ts';
import type { Released, Sender } from './packet-queue.ts';
import { enlargeBuffers } from './udp-buffers.ts';

export type Family = 'udp4' | 'udp6';

export interface FamilySocketSettings {
  readonly log: Log;
  readonly receiveBuffer?: number;
  readonly sendBuffer?: number;
  /** Number of datagrams, from 0. */
  readonly systemCallsAfter: number;
  readonly systemCalls: () => Promise<SystemCalls | null>;
}

export class FamilySocket {
  /** Bytes granted for datagrams that wait to be read, 0 = unknown. */
  receiveBuffer = 0;
  readonly #socket: Socket;
  readonly #settings: FamilySocketSettings;
  readonly #deliver: Deliver;
  readonly #dgram: DgramSender;
  readonly #unreachable: Unreachable | undefined;
  #sender: Sender;
  #receiver: NativeReceiver | undefined;
  readonly #systemCallsAfter: number;
  /** Datagrams carried with `dgram`. */
  #carried = 0;
  #closed = false;

  /** @param bulk false: uses `dgram` only @param unreachable as BindOptions.unreachable */
  constructor(family: Family, bulk: boolean, deliver: Deliver, settings: FamilySocketSettings, unreachable?: Unreachable) {
    this.#socket = createSocket({ type: family, ipv6Only: family === 'udp6', lookup: numericLookup });
    this.#socket.on('message', this.#message);
    this.#dgram = new DgramSender(this.#socket, family, unreachable);
    this.#unreachable = unreachable;
    this.#sender = this.#dgram;
    this.#deliver = deliver;
    this.#settings = settings;
    this.#systemCallsAfter = bulk ? settings.systemCallsAfter : Number.POSITIVE_INFINITY;
  }

  /** @returns the port. */
  async bind(port: number, host: string | undefined): Promise<number> {
    const socket = this.#socket;
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind({ port, ...(host === undefined ? {} : { address: host }), exclusive: true }, () => {
        socket.removeListener('error', reject);
        socket.on('error', (error) => this.#settings.log.warn('UDP socket', { error: error.message }));
        resolve();
      });
    });
    this.receiveBuffer = enlargeBuffers(socket, this.#settings);
    if (this.#systemCallsAfter === 0) await this.#useSystemCalls();
    return socket.address().port;
  }

  send(buffer: Uint8Array, offset: number, length: number, address: string, port: number, released: Released): void {
    this.#sender.send(buffer, offset, length, address, port, released);
    this.#count();
  }

  /** @returns false when it was dropped */
  sendWithHopLimit(datagram: Uint8Array, address: string, port: number, hopLimit: number): boolean {
    this.#count();
    return this.#sender.sendWithHopLimit(datagram, address, port, hopLimit);
  }

  unref(): void {
    this.#socket.unref();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#receiver?.close();
    this.#dgram.close();
    this.#sender.close();
    this.#socket.removeAllListeners('error').on('error', () => {});
    this.#socket.close();
  }

  readonly #message = (datagram: Buffer, from: RemoteInfo): void => {
    this.#deliver(datagram, from.address, from.port);
    if (this.#receiver !== undefined) this.#receiver.drain(this.#deliver);
    else this.#count();
  };

  #count(): void {
    if (++this.#carried === this.#systemCallsAfter) void this.#useSystemCalls();
  }

  /** Switches to its own system calls, where they are available. */
  async #useSystemCalls(): Promise<void> {
    const { log, systemCalls } = this.#settings;
    const calls = await systemCalls();
    if (calls === null || this.#closed) return;
    try {
      this.#callSystem(calls);
      log.debug('UDP socket uses its own system calls', { port: this.#socket.address().port });
    } catch (error) {
      log.debug('UDP without its own system calls', { error: (error as Error).message });
    }
  }

  #callSystem(calls: SystemCalls): void {
    const fd = descriptorOf(this.#socket, calls);
    if (fd < 0) throw new Error('the descriptor of the socket was not found');
    const [receiver, sender] = [new NativeReceiver(calls, fd), new NativeSender(calls, fd, this.#socket, this.#unreachable)];
    this.#receiver = receiver;
    this.#sender = sender;
    // Packets are given back in the order in which they were sent.
    this.#dgram.whenIdle(() => sender.begin());
  }
}

/** `dgram` resolves each destination again, by default asynchronously; our addresses are numeric already. */
export function numericLookup(
  address: string,
  options: number | object,
  callback: (error: null, address: string, family: number) => void,
): void {
  const family = typeof options === 'number' ? options : address.includes(':') ? 6 : 4;
  callback(null, address, family);
}
