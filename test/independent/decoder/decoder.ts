/**
 * Opens every packet of a capture, with the private keys of the initiator alone. Written from PROTOCOL.md; it shares
 * nothing with the implementation.
 *
 * 1. Initiate: mac1 holds for one of the names, the key ring has the ephemeral key. After Retry it may carry the token.
 * 2. Respond and Complete: Noise gives the keys; the ids in the headers are those in the messages.
 * 3. Data: by its destination id; NEW_CONNECTION_ID adds ids.
 * 4. Channel to a station: `/client/connect` carries Initiate, its answer Respond and the route (§7).
 * 5. Route: only a route that such an answer gave, and only packets of its connection.
 *
 * A packet that is not authentic changes nothing. Not here: WebSockets, rendezvous, bare routes, answers to anything.
 */
import { decodeMap } from './cbor.ts';
import { pathOf } from './coap.ts';
import { bytesIn, Connection, type Side, type WholeMessage } from './connection.ts';
import { demand, equal, hex, publicKeyOf, Refused } from './crypto.ts';
import type { OpenedData } from './direction.ts';
import { type Data, decodePacket, type Initiate, mac1Of, type Packet } from './packets.ts';

/** Least size of an Initiate that is a datagram of its own. */
const PADDED = 1_200;

/** A datagram at the initiator's socket. */
export interface Captured {
  readonly side: Side;
  readonly datagram: Uint8Array;
}

/** What a packet was. */
export interface Opened {
  readonly kind: Exclude<Packet['kind'], 'Route'>;
  readonly connection: Connection;
  /** Of the Route header, if there is one. */
  readonly route: Buffer | null;
  /** Of Data. */
  readonly data: OpenedData | null;
}

export class Decoder {
  /** In the order of their Initiate. */
  readonly connections: Connection[] = [];
  readonly #names: readonly string[];
  readonly #keys: ReadonlyMap<string, Uint8Array>;
  /** By destination id: the connection, and the end that sends to that id. */
  readonly #ids = new Map<string, { connection: Connection; sender: Side }>();
  readonly #routes = new Map<string, Connection>();
  /** By id: a reset token that the other end gave. */
  readonly #resetTokens = new Map<string, Buffer>();
  /** Connects that wait for an answer, by token. */
  readonly #connects = new Map<string, Connection>();

  /** @param names responder names that may be called; @param privateKeys static and ephemeral ones of the initiator */
  constructor(names: readonly string[], privateKeys: readonly Uint8Array[]) {
    this.#names = names;
    this.#keys = new Map(privateKeys.map((key) => [hex(publicKeyOf(key)), key]));
  }

  /** @throws Refused for a packet that does not hold */
  open({ side, datagram }: Captured): Opened {
    const bytes = Buffer.from(datagram);
    const packet = decodePacket(bytes);
    if (packet.kind !== 'Route') return this.#open(side, packet, bytes, null);
    const connection = this.#routes.get(hex(packet.route));
    demand(connection !== undefined, 'an unknown route');
    const inner = decodePacket(packet.packet);
    demand(inner.kind !== 'Initiate', 'an Initiate in a Route packet');
    return this.#open(side, inner, packet.packet, { id: packet.route, connection });
  }

  #open(side: Side, packet: Packet, bytes: Buffer, route: { id: Buffer; connection: Connection } | null): Opened {
    if (packet.kind === 'Initiate') {
      demand(side === 'initiator' && bytes.length >= PADDED, 'an Initiate that is not padded, or from the responder');
      return { kind: 'Initiate', connection: this.#begin(packet), route: null, data: null };
    }
    demand(packet.kind !== 'Route', 'a Route packet in a Route packet');
    const id = idOf(packet);
    const known = this.#ids.get(hex(id));
    demand(known !== undefined, 'an unknown id');
    const { connection, sender } = known;
    demand(route === null || route.connection === connection, 'a connection on the route of another one');
    demand(packet.kind === 'Reset' || sender === side, 'an id of the end that sent the packet');
    const data = packet.kind === 'Data' ? this.#data(connection, side, packet) : null;
    if (packet.kind === 'Retry') connection.retry(packet.token);
    if (packet.kind === 'Versions') connection.versions(packet);
    if (packet.kind === 'Respond') this.#respond(connection, packet, bytes);
    if (packet.kind === 'Complete') connection.complete(bytes, packet.message, this.#privateOf);
    if (packet.kind === 'Reset') demand(equal(packet.token, this.#resetTokens.get(hex(id)) ?? Buffer.alloc(0)), 'another reset token');
    return { kind: packet.kind, connection, route: route?.id ?? null, data };
  }

  #begin(initiate: Initiate): Connection {
    const name = this.#names.find((each) => equal(mac1Of(each, initiate.covered), initiate.mac1));
    demand(name !== undefined, 'mac1 holds for no name');
    const before = this.#ids.get(hex(initiate.source))?.connection;
    if (before !== undefined) {
      before.repeat(initiate);
      return before;
    }
    const connection = new Connection(name, initiate, this.#privateOf);
    this.connections.push(connection);
    this.#ids.set(hex(initiate.source), { connection, sender: 'responder' });
    return connection;
  }

  #respond(connection: Connection, { source, message }: Extract<Packet, { kind: 'Respond' }>, bytes: Buffer): void {
    connection.respond(bytes, source, message);
    this.#ids.set(hex(source), { connection, sender: 'initiator' });
    this.#resetTokens.set(hex(source), bytesIn(connection.responderParameters, 'ResetToken'));
  }

  #data(connection: Connection, side: Side, packet: Data): OpenedData {
    const opened = connection.open(side, packet);
    for (const frame of opened.frames) {
      if (frame.type !== 'NEW_CONNECTION_ID') continue;
      this.#ids.set(hex(frame.id), { connection, sender: side === 'initiator' ? 'responder' : 'initiator' });
      if (side === 'responder') this.#resetTokens.set(hex(frame.id), frame.token);
    }
    if (connection.name === 'station') for (const message of opened.whole) this.#control(message);
    return opened;
  }

  /** A message on the channel to a station. */
  #control({ side, coap }: WholeMessage): void {
    const exchange = hex(coap.token);
    if (side === 'initiator') {
      if (pathOf(coap) !== '/client/connect') return;
      const body = decodeMap(coap.payload);
      if (!Object.hasOwn(body, 'Initiate')) return;
      const initiate = decodePacket(bytesIn(body, 'Initiate'));
      demand(initiate.kind === 'Initiate', 'no Initiate in a connect');
      this.#connects.set(exchange, this.#begin(initiate));
      return;
    }
    const connection = this.#connects.get(exchange);
    if (connection === undefined || coap.code !== '2.01') return;
    const answer = decodeMap(coap.payload);
    if (answer.Status !== 0) return;
    const respond = bytesIn(answer, 'Respond');
    const packet = decodePacket(respond);
    demand(packet.kind === 'Respond' && equal(packet.destination, connection.initiate.source), 'no Respond in the answer');
    this.#respond(connection, packet, respond);
    this.#routes.set(hex(bytesIn(answer, 'Route')), connection);
    this.#resetTokens.set(hex(bytesIn(answer, 'Route')), bytesIn(answer, 'RouteResetToken'));
  }

  readonly #privateOf = (publicKey: Uint8Array): Uint8Array => {
    const key = this.#keys.get(hex(publicKey));
    if (key === undefined) throw new Refused('a public key that is not the initiator’s');
    return key;
  };
}

/** Destination of a packet; of a Reset the id that it is about. */
function idOf(packet: Exclude<Packet, Initiate | { kind: 'Route' }>): Buffer {
  if (packet.kind === 'Reset') return packet.id;
  return packet.kind === 'Versions' ? packet.source : packet.destination;
}
