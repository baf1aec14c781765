/**
 * Decides whether to accept an incoming connection, given the existing ones. Some slots may be kept for certain keys. A
 * holder of such keys gets another slot only while it holds no more slots, of either kind, than are free. Other keys
 * share the remaining slots, with a limit per network. Connections are counted at each decision, since slots may be
 * newly kept for a key and a peer may migrate. To make room for a holder, a resting connection of another key is ended:
 * it holds a slot and carries nothing.
 */
import { networkOf } from '../address.ts';
import type { Path } from '../path.ts';
import type { Context } from './context.ts';
import type { Registry, Slot } from './registry.ts';

/** @param slot a new connection, not yet accepted */
export function hasSlot({ config, registry }: Context, slot: Slot, now: number): boolean {
  const { connections, kept } = config.limits;
  if (kept === undefined) return registry.hasRoom(connections);
  const holder = kept.holderOf(slot.connection.peer.fingerprint);
  if (holder !== null) {
    const held = count(registry, (other) => kept.holderOf(other.connection.peer.fingerprint) === holder);
    const limit = connections - Math.max(0, held - 1);
    if (registry.hasRoom(limit)) return true;
    // Ending a connection must be enough to make room.
    if (!registry.hasRoom(limit + 1)) return false;
    return endResting(registry, (other) => kept.holderOf(other.connection.peer.fingerprint) === null, now) && registry.hasRoom(limit);
  }
  if (!registry.hasRoom(connections - kept.connections)) return false;
  const network = networkStraightFrom(slot);
  if (network === null) return true;
  const here = (other: Slot): boolean =>
    networkStraightFrom(other) === network && kept.holderOf(other.connection.peer.fingerprint) === null;
  return count(registry, here) < kept.perNetwork;
}

/**
 * Returns whether a handshake that begins now may find no slot: when those under way have taken theirs, a key that
 * nothing is kept for, from the network with the most connections, would not.
 */
export function isCrowded({ config, registry }: Context, path: Path, halfOpen: number): boolean {
  const { connections, kept } = config.limits;
  const shared = connections - (kept?.connections ?? 0);
  const most = kept === undefined || path.kind === 'route' ? shared : Math.min(shared, kept.perNetwork);
  return !registry.hasRoom(most - halfOpen);
}

/** Ends the matching connection that has rested longest. @returns false when none matches */
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

/** Counts the accepted, open connections that match. */
function count(registry: Registry, matches: (slot: Slot) => boolean): number {
  let found = 0;
  for (const slot of registry.slots) if (slot.accepted && slot.connection.state === 'open' && matches(slot)) found++;
  return found;
}

/**
 * Returns the network from which the packets of the connection come directly; null when they are relayed: all peers
 * behind a base station share its address.
 */
function networkStraightFrom(slot: Slot): string | null {
  const { kind, address } = slot.connection.validatedPath;
  return kind === 'route' ? null : networkOf(address);
}
