/**
 * Packet slots: packets are built and encrypted here, and the caller's socket reads them from here.
 *
 * A slot is HEADROOM bytes and one packet. `transmit` takes slots; the caller gives each back when its socket has
 * finished with it.
 */
import { HEADROOM, packetSlotCount, packetSlotSize, packetSlots } from './layout';

let freeHead: usize = 0;
let untouched: u32 = 0;
export let freeSlots: u32 = 0;

export function packetSlotsInit(): void {
  freeHead = 0;
  untouched = 0;
  freeSlots = packetSlotCount;
}

/** Takes a slot; returns the address where a packet begins, 0 when the caller holds all slots. */
export function takeSlot(): usize {
  let slot = freeHead;
  if (slot) {
    freeHead = load<usize>(slot);
  } else {
    if (untouched == packetSlotCount) return 0;
    slot = packetSlots + packetSlotSize * untouched++;
  }
  freeSlots--;
  return slot + HEADROOM;
}

/** Gives back the slot that contains `address`. False for an address outside the slots. */
export function releaseSlot(address: usize): bool {
  if (address < packetSlots || address >= packetSlots + packetSlotSize * packetSlotCount) return false;
  if (freeSlots >= packetSlotCount) return false;
  const slot = address - ((address - packetSlots) % packetSlotSize);
  store<usize>(slot, freeHead);
  freeHead = slot;
  freeSlots++;
  return true;
}
