/**
 * A CoAP tool in the simulator: coap-packet encodes and decodes its datagrams, so that the gateway is tested against
 * another codec than its own.
 */
import { generate, type NamedOption, type OptionName, type Packet, type ParsedPacket, parse } from 'coap-packet';
import type { BoundSocket } from '../../platform/environment.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import type { ProductFixture } from '../support/fixture/products.ts';

/** Value of a Block option. */
export function block(number: number, more: boolean, exponent: number): Buffer {
  const value = number * 16 + (more ? 8 : 0) + exponent;
  return value < 256 ? Buffer.from([value]) : Buffer.from([value >> 16, (value >> 8) & 255, value & 255]);
}

export function path(...segments: string[]): NamedOption[] {
  return segments.map((segment) => ({ name: 'Uri-Path' as OptionName, value: Buffer.from(segment) }));
}

/** Values of an option of a message, as hex. */
export function option(packet: ParsedPacket | undefined, name: string): string[] {
  return (packet?.options ?? []).filter((each) => each.name === name).map(({ value }) => value.toString('hex'));
}

export class Tool {
  readonly received: ParsedPacket[] = [];
  readonly #fixture: ProductFixture;
  readonly #socket: BoundSocket;
  readonly #address: string;
  readonly #port: number;
  #id = 100;

  static async open(fixture: ProductFixture, host: SimulatedHost, address: string, port: number): Promise<Tool> {
    const received: ParsedPacket[] = [];
    const socket = await host.network.bind({ port: 0, receive: (bytes) => received.push(parse(Buffer.from(bytes))) });
    return new Tool(fixture, socket, address, port, received);
  }

  private constructor(fixture: ProductFixture, socket: BoundSocket, address: string, port: number, received: ParsedPacket[]) {
    this.#fixture = fixture;
    this.#socket = socket;
    this.#address = address;
    this.#port = port;
    this.received = received;
  }

  /** Sends a message unchanged. @returns its id */
  send(packet: Packet): number {
    const messageId = packet.messageId ?? this.#id++;
    this.raw(generate({ confirmable: true, token: Buffer.from([1]), ...packet, messageId }, 65_000));
    return messageId;
  }

  raw(bytes: Uint8Array): void {
    this.#socket.send(bytes, 0, bytes.length, this.#socket.path(this.#address, this.#port), () => {});
  }

  /** Sends a message and returns the next one that arrives. */
  async ask(packet: Packet): Promise<ParsedPacket> {
    const before = this.received.length;
    this.send(packet);
    await this.#fixture.sim.run(() => this.received.length > before);
    return this.received[before] as ParsedPacket;
  }

  /** Acknowledges or resets a message of the gateway. */
  settle(packet: ParsedPacket | undefined, kind: 'ack' | 'reset'): void {
    this.raw(generate({ code: '0.00', messageId: packet?.messageId ?? 0, [kind]: true, token: Buffer.alloc(0) }));
  }

  close(): void {
    this.#socket.close();
  }
}
