/** Shared by all exports: the connection of a handle, and the fields of a result. */
import { abortUnless } from '../memory/invariant';
import { results } from '../memory/layout';
import { Connection } from '../records/connection';
import { connectionOf } from '../records/slab';

/** Returns the connection of a handle; a handle that is not open is a bug of the caller and traps. */
export function the(handle: u32): Connection {
  const c = connectionOf(handle);
  abortUnless(changetype<usize>(c) != 0);
  return c;
}

/** Sets result field `index`, which the caller reads. */
export function put(index: i32, value: f64): void {
  store<f64>(results + ((<usize>index) << 3), value);
}
