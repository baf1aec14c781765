/** One connection as its initiator sees it: the handshake (PROTOCOL.md §3), then the packets of both directions. */
import { type CborMap, decodeMap } from './cbor.ts';
import { type CoapMessage, decodeCoap } from './coap.ts';
import { demand, equal, hkdf, publicKeyOf } from './crypto.ts';
import { Direction, type OpenedData } from './direction.ts';
import type { Frame } from './frames.ts';
import { begin, type Message2, message1, readMessage2, readMessage3, type Symmetric } from './noise.ts';
import type { Data, Initiate } from './packets.ts';

/** The end that sent something. */
export type Side = 'initiator' | 'responder';

/** A message that has arrived whole. */
export interface WholeMessage {
  readonly side: Side;
  readonly id: number;
  readonly bytes: Buffer;
  readonly coap: CoapMessage;
}

/** What the decoder knows of private keys: that of a public key, or nothing. */
export type KeyRing = (publicKey: Uint8Array) => Uint8Array;

export class Connection {
  readonly name: string;
  readonly initiate: Initiate;
  readonly messages: WholeMessage[] = [];
  readonly closes: { readonly side: Side; readonly application: boolean; readonly code: number; readonly reason: string }[] = [];
  /** Fields of messages 2 and 3. */
  responderParameters: CborMap = {};
  initiatorParameters: CborMap = {};
  /** Of section 3; both once Complete was read. */
  hash: Uint8Array | undefined;
  directions: Readonly<Record<Side, Direction>> | undefined;
  readonly #ephemeral: Uint8Array;
  readonly #afterMessage1: Symmetric;
  #message2: (Message2 & { readonly source: Buffer; readonly packet: Buffer }) | undefined;
  #complete: Buffer | undefined;
  /** Of the Retry that the initiator honours: the first (section 2.4). */
  #token: Buffer | undefined;

  /** @throws Refused when the ephemeral key is not in the ring */
  constructor(name: string, initiate: Initiate, privateOf: KeyRing) {
    const { version, suite, message } = initiate;
    demand(version === 1 && suite === 1, 'another version or suite');
    demand(initiate.token.length === 0, 'a token before Retry');
    this.name = name;
    this.initiate = initiate;
    this.#ephemeral = privateOf(message);
    this.#afterMessage1 = message1(begin(version, suite, name), publicKeyOf(this.#ephemeral));
  }

  /** Undefined before Respond. */
  get responderId(): Buffer | undefined {
    return this.#message2?.source;
  }

  /** Public key of the responder. */
  get responderKey(): Buffer | undefined {
    return this.#message2?.remoteStatic;
  }

  /** @throws Refused, and then nothing has changed, as in all below */
  repeat({ message, token }: Initiate): void {
    demand(equal(message, this.initiate.message), 'the source id of another connection');
    demand(token.length === 0 || equal(token, this.#token ?? Buffer.alloc(0)), 'a token of no Retry');
  }

  retry(token: Buffer): void {
    demand(this.#message2 === undefined, 'a Retry after Respond');
    this.#token ??= Buffer.from(token);
  }

  /** An initiator ignores Versions that list what it offered (section 2.3). */
  versions({ versions, suites }: { readonly versions: Buffer; readonly suites: Buffer }): void {
    demand(this.#message2 === undefined, 'Versions after Respond');
    const { version, suite } = this.initiate;
    demand(!(versions.includes(version) && suites.includes(suite)), 'Versions that list what was offered');
  }

  respond(packet: Buffer, source: Buffer, message: Buffer): void {
    if (this.#message2 !== undefined) {
      demand(equal(packet, this.#message2.packet), 'another Respond than the first');
      return;
    }
    const read = readMessage2(this.#afterMessage1, message, this.#ephemeral);
    const parameters = decodeMap(read.payload);
    demand(equal(bytesIn(parameters, 'Id'), source), 'the source id is not the one in message 2');
    this.responderParameters = parameters;
    this.#message2 = { ...read, source, packet };
  }

  complete(packet: Buffer, message: Buffer, privateOf: KeyRing): void {
    const { state: before, remoteEphemeral } = this.#established2();
    if (this.#complete !== undefined) {
      demand(equal(packet, this.#complete), 'another Complete than the first');
      return;
    }
    const { state, payload } = readMessage3(before, message, remoteEphemeral, privateOf);
    const parameters = decodeMap(payload);
    demand(equal(bytesIn(parameters, 'Id'), this.initiate.source), 'the source id of Initiate is not the one in message 3');
    const [k1, k2] = hkdf(state.ck, '');
    const [m1, m2] = hkdf(state.ck, 'svc mask');
    this.initiatorParameters = parameters;
    this.hash = state.h;
    this.directions = { initiator: new Direction(k1, m1), responder: new Direction(k2, m2) };
    this.directions.initiator.countComplete();
    this.#complete = packet;
  }

  /** A packet that `side` sent. */
  open(side: Side, packet: Data): OpenedData & { readonly whole: readonly WholeMessage[] } {
    demand(this.directions !== undefined, 'Data before Complete');
    const opened = this.directions[side].open(packet);
    const whole = opened.frames.flatMap((frame) => this.#apply(side, frame));
    return { ...opened, whole };
  }

  /** A message that the frame made whole. */
  #apply(side: Side, frame: Frame): WholeMessage[] {
    if (frame.type === 'CONNECTION_CLOSE') this.closes.push({ side, ...frame });
    if (frame.type !== 'STREAM') return [];
    const { id } = frame;
    const direction = this.directions![side];
    const isMessage = (id & 2) !== 0;
    demand(!isMessage || (id & 1) === (side === 'initiator' ? 0 : 1), 'a message on a stream of the other end');
    const wasWhole = direction.streams.get(id)?.isWhole ?? false;
    const stream = direction.add(frame);
    if (!isMessage || wasWhole || !stream.isWhole) return [];
    const message = { side, id, bytes: stream.bytes, coap: decodeCoap(stream.bytes) };
    this.messages.push(message);
    return [message];
  }

  #established2(): Message2 {
    demand(this.#message2 !== undefined, 'Complete before Respond');
    return this.#message2;
  }
}

/** A field that holds bytes. */
export function bytesIn(map: CborMap, key: string): Buffer {
  const value = map[key];
  demand(Buffer.isBuffer(value), `no bytes in the field ${key}`);
  return value;
}
