/** The connection slots of the slab: taken, given back, counted. A handle is the index of a slot. */
import { abortUnless } from '../abort';
import { CONNECTION_SIZE, connectionCount, connectionSlab } from '../memory/layout';
import { Connection } from './connection';

let freeHead: usize = 0;
let untouched: u32 = 0;
export let connectionsOpen: u32 = 0;

export function connectionsInit(): void {
  freeHead = 0;
  untouched = 0;
  connectionsOpen = 0;
}

/** Returns the connection of a handle; a handle that is not open is a bug of the caller and traps. */
export function the(handle: u32): Connection {
  abortUnless(handle < untouched);
  const c = changetype<Connection>(connectionSlab + CONNECTION_SIZE * handle);
  abortUnless(c.packetSize != 0);
  return c;
}

/** Takes a cleared slot; null (0) when all are taken. */
export function takeConnection(): Connection {
  let at = freeHead;
  if (at) freeHead = load<usize>(at);
  else if (untouched < connectionCount) at = connectionSlab + CONNECTION_SIZE * untouched++;
  else return changetype<Connection>(0);
  memory.fill(at, 0, CONNECTION_SIZE);
  connectionsOpen++;
  return changetype<Connection>(at);
}

/**
 * Clears the slot and frees it. Except for its link at the start, a free slot is all zeros: `packetSize` 0
 * distinguishes it from a live one.
 */
export function giveBack(c: Connection): void {
  memory.fill(changetype<usize>(c), 0, CONNECTION_SIZE);
  store<usize>(changetype<usize>(c), freeHead);
  freeHead = changetype<usize>(c);
  connectionsOpen--;
}
