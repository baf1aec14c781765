/**
 * The turns of the connections of an endpoint: which is asked for packets next, and which wait.
 *
 *   ready ─▶ asked ─┬─ packets ─▶ ready again, behind the others
 *                   ├─ nothing left ─▶ its timer
 *                   ├─ no packet slot ─▶ starved, until slots are released
 *                   └─ no room in the socket of its active path ─▶ held, until there is
 */
import type { Core } from '../../bindings/index.ts';
import { CoreBatch, type PacketBatch } from './batch.ts';
import type { Registry, Slot } from './registry.ts';

/** Most packets of one connection in a batch. */
const BATCH = 32;
/**
 * With fewer free packet slots, connections are not asked for packets: a closing one may need two, and "no packets"
 * would only mean "no slots".
 */
const MIN_FREE = 2;
/** Shortest timer, in ms, of a connection that waits for room or slots: nothing can be sent before that. */
const WAIT_PAUSE = 100;

const ANY_ROOM = (): number => BATCH;

export class Transmitter {
  readonly #slots: number;
  readonly #registry: Registry;
  readonly #batch: CoreBatch;
  /** Connections that wait for packet slots. */
  readonly #starved = new Set<Slot>();
  /** Connections that wait for room in a socket, by its index. */
  readonly #held = new Map<number, Set<Slot>>();

  constructor(core: Core, registry: Registry) {
    this.#slots = core.packetSlots;
    this.#registry = registry;
    this.#batch = new CoreBatch(core);
  }

  /** Returns packets of one connection for one path, or null; see `Endpoint.transmit`. */
  next(now: number, room: (socket: number) => number = ANY_ROOM): PacketBatch | null {
    const registry = this.#registry;
    if (this.#starved.size > 0 && this.#hasSlots) this.#ask(this.#starved);
    if (this.#held.size > 0) this.#askHeld(room);
    for (let slot = registry.nextReady(); slot !== undefined; slot = registry.nextReady()) {
      const { connection } = slot;
      const isOpen = slot.dial === null && connection.state !== 'closed';
      if (isOpen && !this.#hasSlots) {
        this.#wait(this.#starved, slot, now);
        continue;
      }
      const most = isOpen ? Math.min(BATCH, room(connection.path.socket)) : 0;
      // At 0 there may still be a challenge on another path.
      const count = isOpen ? connection.transmit(now, most) : 0;
      if (count > 0) {
        registry.ready(slot);
        return this.#batch.of(connection.transmitPath, count);
      }
      if (isOpen && most === 0) this.#wait(this.#heldBy(connection.path.socket), slot, now);
      else registry.timers.set(slot, slot.nextTimeout());
    }
    return null;
  }

  /** Call for a connection that is gone: a socket may stall forever, so what waits for it must not outlive that. */
  forget(slot: Slot): void {
    this.#starved.delete(slot);
    for (const held of this.#held.values()) held.delete(slot);
  }

  get #hasSlots(): boolean {
    return this.#slots - this.#batch.outstanding >= MIN_FREE;
  }

  #wait(among: Set<Slot>, slot: Slot, now: number): void {
    among.add(slot);
    this.#registry.timers.set(slot, Math.max(slot.nextTimeout(), now + WAIT_PAUSE));
  }

  #ask(waiting: Set<Slot>): void {
    for (const slot of waiting) this.#registry.ready(slot);
    waiting.clear();
  }

  #heldBy(socket: number): Set<Slot> {
    const held = this.#held.get(socket) ?? new Set<Slot>();
    this.#held.set(socket, held);
    return held;
  }

  #askHeld(room: (socket: number) => number): void {
    for (const [socket, held] of this.#held) {
      if (room(socket) <= 0) continue;
      this.#ask(held);
      this.#held.delete(socket);
    }
  }
}
