/**
 * Routes each datagram by its first byte and then by its id (PROTOCOL.md §2). The hot path is `#data`: two comparisons,
 * an array index, one call into the core, and no object created.
 */
import { CloseCode, RemoteError } from '../errors/index.ts';
import {
  decodeComplete,
  decodeReset,
  ID_LENGTH,
  idHigh,
  idLow,
  isData,
  isRoute,
  PacketType,
  packetId,
  ROUTE_HEADER,
} from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { Acceptor } from './accepting.ts';
import { type Completer, tagOf } from './completing.ts';
import type { Context } from './context.ts';
import type { Dialer } from './dialing.ts';
import { HalfOpen } from './half-open.ts';
import { Slot } from './registry.ts';

export class Demultiplexer {
  readonly #context: Context;
  readonly #dialer: Dialer;
  readonly #acceptor: Acceptor;
  readonly #completer: Completer;
  readonly #onRouteEnded: (path: Path) => void;
  /** False once the endpoint is closing: nothing new is accepted. */
  accepting = true;

  /** @param onRouteEnded called with a route that its station has ended */
  constructor(context: Context, dialer: Dialer, acceptor: Acceptor, completer: Completer, onRouteEnded: (path: Path) => void) {
    this.#onRouteEnded = onRouteEnded;
    this.#context = context;
    this.#dialer = dialer;
    this.#acceptor = acceptor;
    this.#completer = completer;
  }

  receive(datagram: Uint8Array, path: Path, now: number): void {
    const type = datagram[0];
    if (type === PacketType.DATA || type === PacketType.DATA_PHASE) this.#data(datagram, 0, path, now);
    else if (type === PacketType.ROUTE) this.#route(datagram, path, now);
    else if (type === PacketType.INITIATE) this.#initiate(datagram, path, now);
    else this.#handshake(new Uint8Array(datagram), path, now);
  }

  #route(datagram: Uint8Array, channel: Path, now: number): void {
    const { routes, stats } = this.#context;
    if (!isRoute(datagram)) {
      stats.malformed++;
      return;
    }
    const path = routes.find(idHigh(datagram, 0), idLow(datagram, 0), channel);
    if (path === undefined) {
      // No Reset: only the creator of a route id, the relay of a station (protocol/relay/), knows that it is dead.
      stats.unknownId++;
      return;
    }
    const type = datagram[ROUTE_HEADER];
    if (type === PacketType.DATA || type === PacketType.DATA_PHASE) this.#data(datagram, ROUTE_HEADER, path, now);
    // It arrives by /client/connect, where the station limits the number; on a route it would be unlimited.
    else if (type === PacketType.INITIATE) stats.malformed++;
    else this.#handshake(new Uint8Array(datagram.subarray(ROUTE_HEADER)), path, now);
  }

  #data(datagram: Uint8Array, start: number, path: Path, now: number): void {
    const { ids, registry, stats } = this.#context;
    if (!isData(datagram, start)) {
      stats.malformed++;
      return;
    }
    const high = idHigh(datagram, start);
    const low = idLow(datagram, start);
    const owner = ids.find(high, low);
    if (owner instanceof Slot) {
      if (owner.connection.receive(datagram, start, path, now)) {
        registry.ready(owner);
        registry.activate(owner);
      } else stats.unauthenticated++;
    } else if (owner instanceof HalfOpen) this.#acceptor.early(owner, datagram, start, now);
    else {
      stats.unknownId++;
      if (ids.isOurs(high, low)) this.#sendReset(packetId(datagram, start), datagram.length - start, path, now);
    }
  }

  #initiate(datagram: Uint8Array, path: Path, now: number): void {
    if (this.accepting) this.#acceptor.initiate(datagram, datagram.length, path, now);
    else this.#context.stats.limited++;
  }

  /** @param packet our own copy: its contents are needed beyond this call */
  #handshake(packet: Uint8Array, path: Path, now: number): void {
    const { ids, stats } = this.#context;
    if (packet.length <= 1 + ID_LENGTH) {
      stats.malformed++;
      return;
    }
    const owner = ids.find(idHigh(packet, 0), idLow(packet, 0));
    switch (packet[0]) {
      case PacketType.RETRY:
      case PacketType.RESPOND:
      case PacketType.VERSIONS:
        if (!(owner instanceof Slot) || owner.dial === null) stats.unknownId++;
        else if (!this.#dialer.receive(owner, packet, now)) stats.badHandshake++;
        break;
      case PacketType.COMPLETE:
        this.#complete(owner, packet, path, now);
        break;
      case PacketType.RESET:
        this.#reset(packet, path, now);
        break;
      default:
        stats.malformed++;
    }
  }

  #complete(owner: Slot | HalfOpen | undefined, packet: Uint8Array, path: Path, now: number): void {
    const { registry, stats } = this.#context;
    const fields = decodeComplete(packet);
    if (owner === undefined || fields === null) stats.unknownId++;
    else if (owner instanceof HalfOpen) this.#completer.complete(owner, packet, fields.message, path, now);
    else if (owner.complete === tagOf(packet)) {
      // Our acknowledgement was lost.
      owner.connection.completeReceived(now);
      registry.ready(owner);
    } else stats.badHandshake++;
  }

  #reset(packet: Uint8Array, path: Path, now: number): void {
    const { registry, routes, stats } = this.#context;
    const fields = decodeReset(packet);
    if (fields === null) {
      stats.malformed++;
      return;
    }
    const slot = registry.remoteIds.find(fields.id, fields.token);
    if (slot !== undefined) {
      registry.lose(slot, new RemoteError('CLOSED', 'the peer has lost the state of the connection'));
      return;
    }
    const route = routes.resetBy(fields.id, fields.token, path);
    if (route === undefined) {
      stats.unknownId++;
      return;
    }
    const error = new RemoteError('CLOSED', 'the route through the base station ended');
    this.#onRouteEnded(route);
    for (const user of [...registry.slots]) {
      if (user.connection.pathLost(route, now, error)) continue;
      registry.lose(user, error, CloseCode.ROUTE_CLOSED);
    }
  }

  #sendReset(id: Uint8Array, length: number, path: Path, now: number): void {
    const { outbox, resets, stats } = this.#context;
    const packet = resets.answer(id, length, now);
    if (packet === null || !outbox.push(path, packet)) stats.limited++;
    else stats.resetsSent++;
  }
}
