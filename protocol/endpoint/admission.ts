/**
 * Whether a connection that others have made is accepted, beside those that are there. Some places may be kept for certain keys; of the rest, other
 * keys hold no more from one network than their share. Counted anew each time, as a key may come to be one of those, and a peer may move.
 */
import { networkOf } from '../address.ts';
import type { Context } from './context.ts';
import type { Slot } from './registry.ts';

/** @param slot a new connection, not yet accepted */
export function hasPlace({ config, registry }: Context, slot: Slot): boolean {
  const { connections, kept } = config.limits;
  if (kept === undefined || kept.isFor(slot.connection.remoteFingerprint)) return registry.hasRoom(connections);
  if (!registry.hasRoom(connections - kept.connections)) return false;
  const network = networkStraightFrom(slot);
  if (network === null) return true;
  let held = 0;
  for (const other of registry.slots) {
    const counts = other.accepted && other.connection.state === 'open' && networkStraightFrom(other) === network;
    if (counts && !kept.isFor(other.connection.remoteFingerprint)) held++;
  }
  return held < kept.perNetwork;
}

/** The network its packets come straight from; null where something else carries them: all whom a base station relays have its address. */
function networkStraightFrom(slot: Slot): string | null {
  const { kind, address } = slot.connection.provenPath;
  return kind === 'udp' ? networkOf(address) : null;
}
