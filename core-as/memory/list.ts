/**
 * Doubly linked lists through fields of their items.
 *
 * A list is two u32 in its owner (head, tail); an item holds two u32 (previous, next) at a fixed offset, `link`. For an
 * item in no list both are zero and it is no head, so membership needs no flag.
 */

export function head(list: usize): usize {
  return load<usize>(list);
}

export function next(item: usize, link: usize): usize {
  return load<usize>(item + link, 4);
}

export function contains(list: usize, item: usize, link: usize): bool {
  return load<usize>(item + link) != 0 || load<usize>(list) == item;
}

/** Appends `item` unless the list already contains it. */
export function push(list: usize, item: usize, link: usize): void {
  if (contains(list, item, link)) return;
  const tail = load<usize>(list, 4);
  store<usize>(item + link, tail);
  store<usize>(item + link, 0, 4);
  if (tail) store<usize>(tail + link, item, 4);
  else store<usize>(list, item);
  store<usize>(list, item, 4);
}

/** Removes `item` if it is in the list. */
export function remove(list: usize, item: usize, link: usize): void {
  if (!contains(list, item, link)) return;
  const before = load<usize>(item + link);
  const after = load<usize>(item + link, 4);
  if (before) store<usize>(before + link, after, 4);
  else store<usize>(list, after);
  if (after) store<usize>(after + link, before);
  else store<usize>(list, before, 4);
  store<usize>(item + link, 0);
  store<usize>(item + link, 0, 4);
}

/** Moves the head to the end: it is the next item's turn. */
export function rotate(list: usize, link: usize): void {
  const first = load<usize>(list);
  if (!first || first == load<usize>(list, 4)) return;
  remove(list, first, link);
  push(list, first, link);
}
