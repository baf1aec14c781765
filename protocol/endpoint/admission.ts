/**
 * Whether a connection that others have made is accepted, beside those that are there. Some places may be kept for certain keys, whose holder takes
 * another place only while it holds no more of all than are free; of the rest, other keys hold no more from one network than their share.
 * Counted anew each time, as a key may come to be one of those, and a peer may move. For one of the certain keys a connection of another
 * key makes way that has no path at the moment: it holds a place and carries nothing.
 */
import { networkOf } from '../address.ts';
import type { Context } from './context.ts';
import type { Registry, Slot } from './registry.ts';

/** @param slot a new connection, not yet accepted */
export function hasPlace({ config, registry }: Context, slot: Slot, now: number): boolean {
  const { connections, kept } = config.limits;
  if (kept === undefined) return registry.hasRoom(connections);
  const holder = kept.holderOf(slot.connection.remoteFingerprint);
  if (holder !== null) {
    const held = count(registry, (other) => kept.holderOf(other.connection.remoteFingerprint) === holder);
    const limit = connections - Math.max(0, held - 1);
    if (registry.hasRoom(limit)) return true;
    // One that makes way has to make room.
    if (!registry.hasRoom(limit + 1)) return false;
    return endResting(registry, (other) => kept.holderOf(other.connection.remoteFingerprint) === null, now) && registry.hasRoom(limit);
  }
  if (!registry.hasRoom(connections - kept.connections)) return false;
  const network = networkStraightFrom(slot);
  if (network === null) return true;
  const here = (other: Slot): boolean =>
    networkStraightFrom(other) === network && kept.holderOf(other.connection.remoteFingerprint) === null;
  return count(registry, here) < kept.perNetwork;
}

/** Ends the connection that has rested longest of those that match. @returns false when none does */
function endResting(registry: Registry, matches: (slot: Slot) => boolean, now: number): boolean {
  let longest: Slot | null = null;
  for (const slot of registry.slots) {
    const { restSince } = slot.connection;
    if (!slot.accepted || restSince === null || !matches(slot)) continue;
    if (longest === null || restSince < longest.connection.restSince!) longest = slot;
  }
  longest?.connection.makeWay(now);
  return longest !== null;
}

/** Connections that were accepted, are open and match. */
function count(registry: Registry, matches: (slot: Slot) => boolean): number {
  let found = 0;
  for (const slot of registry.slots) if (slot.accepted && slot.connection.state === 'open' && matches(slot)) found++;
  return found;
}

/** The network its packets come straight from; null where something else carries them: all whom a base station relays have its address. */
function networkStraightFrom(slot: Slot): string | null {
  const { kind, address } = slot.connection.validatedPath;
  return kind === 'route' ? null : networkOf(address);
}
