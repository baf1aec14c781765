/** What all exports need: the connection of a handle, and the fields of an answer. */
import { abortUnless } from '../memory/invariant';
import { results } from '../memory/layout';
import { Connection } from '../records/connection';
import { connectionOf } from '../records/slab';

/** The connection of a handle; a handle that is not open is the host's bug and traps. */
export function the(handle: u32): Connection {
  const c = connectionOf(handle);
  abortUnless(changetype<usize>(c) != 0);
  return c;
}

/** Field `index` of the answer that the host reads. */
export function put(index: i32, value: f64): void {
  store<f64>(results + ((<usize>index) << 3), value);
}
