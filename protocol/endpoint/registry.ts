/**
 * The connections of an endpoint: which have packets, which have events, when each wants to be called again, and the
 * ids under which the peer may reset it. A connection stays here until the core has drained it.
 */
import type { ConnectionIds, CoreConnection } from '../../bindings/index.ts';
import { Connection, type ConnectionOwner } from '../connection/index.ts';
import type { SvcError } from '../errors/index.ts';
import { Fifo } from '../fifo.ts';
import { packed, unpacked } from '../packed-bytes.ts';
import { ID_LENGTH } from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { Dial } from './dial.ts';
import { type RemoteIdOwner, RemoteIds } from './remote-ids.ts';
import type { EndpointStats } from './stats.ts';
import { type Timed, Timers } from './timers.ts';

/** An event of `Endpoint.nextEvent`. */
export type EndpointEvent =
  /** A peer has completed a handshake with us. */
  | { readonly kind: 'connection'; readonly connection: Connection }
  /** The connection has events: call its nextEvent until null. Emitted once until then. */
  | { readonly kind: 'active'; readonly connection: Connection }
  /** No handshake and no connection of this end uses the route any longer, not even a closing one. */
  | { readonly kind: 'route-unused'; readonly path: Path }
  /** The core is dead, and all connections with it: create a new core and endpoint. */
  | { readonly kind: 'failed'; readonly error: SvcError };

/** Callbacks of the registry to the endpoint. */
export interface RegistryHooks {
  /** The application has called a connection. */
  touched(): void;
  /** A connection is gone for good. */
  released(slot: Slot): void;
  idsChanged(slot: Slot, ids: ConnectionIds, core: CoreConnection): void;
  pathAdded(path: Path): void;
  pathRemoved(path: Path): void;
}

/** One connection in its endpoint. */
export class Slot implements Timed, ConnectionOwner, RemoteIdOwner {
  readonly connection: Connection;
  timerAt = Number.POSITIVE_INFINITY;
  timerIndex = -1;
  /** In the queue of slots to ask for packets. */
  ready = false;
  /** In the queue of events. */
  active = false;
  /** Refused: it is not announced. */
  silent = false;
  /** Counts against the limit of accepted connections. */
  accepted = false;
  /** The route that it uses. */
  route: Path | null = null;
  /** Set while dialing. */
  dial: Dial | null = null;
  /** Responder: the tag at the end of the verified Complete, packed. */
  complete = '';
  /** Our ids besides the first, packed in sequence. */
  furtherIds = '';
  remoteIds = '';
  readonly #registry: Registry;
  /** Packed. */
  readonly #id: string;

  constructor(registry: Registry, id: Uint8Array, options: { initiator: boolean; path: Path | null }) {
    this.#registry = registry;
    this.#id = packed(id);
    this.connection = new Connection({ ...options, owner: this });
  }

  /** Our first id of the connection. */
  get id(): Uint8Array {
    return unpacked(this.#id);
  }

  /** The first id and the further ones. */
  get ids(): readonly Uint8Array[] {
    const further = unpacked(this.furtherIds);
    return [this.id, ...Array.from({ length: further.length / ID_LENGTH }, (_, i) => further.slice(i * ID_LENGTH, (i + 1) * ID_LENGTH))];
  }

  /** A slot is its own event. */
  get kind(): 'active' {
    return 'active';
  }

  touched(): void {
    this.#registry.ready(this);
    this.#registry.hooks.touched();
  }

  eventful(): void {
    this.#registry.activate(this);
  }

  drained(): void {
    this.#registry.release(this);
  }

  pathAdded(path: Path): void {
    this.#registry.hooks.pathAdded(path);
  }

  pathRemoved(path: Path): void {
    if (path === this.route) this.route = null;
    this.#registry.hooks.pathRemoved(path);
  }

  idsChanged(ids: ConnectionIds, core: CoreConnection): void {
    this.#registry.hooks.idsChanged(this, ids, core);
  }

  nextTimeout(): number {
    return this.dial?.nextTimeout() ?? this.connection.nextTimeout();
  }
}

export class Registry {
  readonly timers = new Timers<Slot>();
  readonly remoteIds = new RemoteIds<Slot>();
  /** Accepted connections that count against the limit. */
  accepted = 0;
  readonly #slots = new Set<Slot>();
  readonly #ready = new Fifo<Slot>();
  readonly #events = new Fifo<EndpointEvent>();
  readonly hooks: RegistryHooks;
  readonly #stats: EndpointStats;

  constructor(stats: EndpointStats, hooks: RegistryHooks) {
    this.#stats = stats;
    this.hooks = hooks;
  }

  get slots(): Iterable<Slot> {
    return this.#slots;
  }

  get size(): number {
    return this.#slots.size;
  }

  add(slot: Slot): void {
    this.#slots.add(slot);
    this.#stats.connections = this.#slots.size;
  }

  /** Queues the slot to be asked for packets and for its next timeout. */
  ready(slot: Slot): void {
    if (slot.ready || !this.#slots.has(slot)) return;
    slot.ready = true;
    this.#ready.push(slot);
  }

  /** Returns the slot that was queued first. */
  nextReady(): Slot | undefined {
    const slot = this.#ready.shift();
    if (slot !== undefined) slot.ready = false;
    return slot;
  }

  /** Announces that the connection may have events. */
  activate(slot: Slot): void {
    if (slot.silent) {
      while (slot.connection.nextEvent() !== null);
      return;
    }
    if (slot.active) return;
    slot.active = true;
    this.#events.push(slot);
  }

  announce(event: EndpointEvent): void {
    this.#events.push(event);
  }

  nextEvent(): EndpointEvent | null {
    const event = this.#events.shift() ?? null;
    if (event instanceof Slot) event.active = false;
    return event;
  }

  /**
   * Returns whether fewer than `limit` accepted connections are open. Closing ones no longer need their slots: they are
   * subtracted only when the limit is reached.
   */
  hasRoom(limit: number): boolean {
    if (this.accepted < limit) return true;
    for (const slot of this.#slots) {
      if (!slot.accepted || slot.connection.state === 'open') continue;
      slot.accepted = false;
      this.accepted--;
    }
    return this.accepted < limit;
  }

  /**
   * Forgets the oldest closing connection early (RFC 9000 §10.2 allows it): later packets of its peer are answered with
   * Reset.
   * @returns false when there is none
   */
  endClosing(): boolean {
    for (const slot of this.#slots) {
      if (slot.connection.state !== 'closing') continue;
      this.release(slot);
      return true;
    }
    return false;
  }

  /** Ends a connection without a packet and forgets it. */
  lose(slot: Slot, error: SvcError, code?: number): void {
    slot.connection.lost(error, code);
    this.activate(slot);
    this.release(slot);
  }

  release(slot: Slot): void {
    if (!this.#slots.delete(slot)) return;
    this.timers.remove(slot);
    this.remoteIds.remove(slot);
    if (slot.accepted) this.accepted--;
    slot.dial?.wipe();
    slot.dial = null;
    slot.connection.free();
    this.#stats.connections = this.#slots.size;
    this.hooks.released(slot);
  }
}
