/** The other ends' ids: found by the whole id and its token, forgotten with their owner, and bounded where ends choose the same word again and again. */
import { expect, it } from 'vitest';
import { type RemoteId, type RemoteIdOwner, RemoteIds } from '../../../protocol/endpoint/remote-ids.ts';

class Owner implements RemoteIdOwner {
  remoteIds = '';
}

/** @param word of an id, and what is behind it; the token is made of both */
function entry(word: number, rest: number): RemoteId {
  const id = new Uint8Array(8);
  new DataView(id.buffer).setUint32(0, word);
  new DataView(id.buffer).setUint32(4, rest);
  return { id, resetToken: new Uint8Array(16).fill(word ^ rest) };
}

const found = (table: RemoteIds<Owner>, { id, resetToken }: RemoteId): Owner | undefined => table.find(id, resetToken);

it('finds an owner by each of its ids, and by nothing that differs in a byte', () => {
  const table = new RemoteIds<Owner>();
  const [one, other] = [new Owner(), new Owner()];
  // Words of both signs, as they are kept as signed numbers.
  const ids = [entry(0xffff_fff0, 1), entry(7, 2), entry(0, 0)];
  for (const id of ids) table.add(one, id);
  table.add(other, entry(8, 3));
  expect(ids.map((id) => found(table, id))).toEqual([one, one, one]);
  expect(found(table, entry(8, 3))).toBe(other);
  for (const { id, resetToken } of ids) {
    for (let at = 0; at < 8; at++) expect(table.find(id.with(at, id[at]! ^ 1), resetToken)).toBeUndefined();
    for (let at = 0; at < 16; at++) expect(table.find(id, resetToken.with(at, resetToken[at]! ^ 1))).toBeUndefined();
    expect(table.find(id, resetToken.subarray(1))).toBeUndefined();
  }
});

it('does not take the token of one id for another of the same owner', () => {
  const table = new RemoteIds<Owner>();
  const owner = new Owner();
  const [a, b] = [entry(5, 1), entry(5, 2)];
  for (const id of [a, b]) table.add(owner, id);
  expect(table.find(a.id, b.resetToken)).toBeUndefined();
});

it('forgets what the other end took back, and all with its owner', () => {
  const table = new RemoteIds<Owner>();
  const [one, other] = [new Owner(), new Owner()];
  const [first, second, third] = [entry(1, 1), entry(1, 2), entry(1, 3)];
  table.add(one, first);
  table.add(other, second);
  table.replace(one, [second, third]);
  expect([found(table, first), found(table, third)]).toEqual([undefined, one]);
  table.remove(one);
  expect([found(table, third), found(table, second), one.remoteIds]).toEqual([undefined, other, '']);
  table.remove(other);
  expect(found(table, second)).toBeUndefined();
});

it('keeps the token of an id that stays in force, as the core does not know that of the first', () => {
  const table = new RemoteIds<Owner>();
  const owner = new Owner();
  const [first, second] = [entry(1, 2), entry(2, 2)];
  table.add(owner, first);
  table.replace(owner, [{ id: first.id, resetToken: new Uint8Array(16) }, second]);
  expect([found(table, first), found(table, second)]).toEqual([owner, owner]);
  expect(table.find(first.id, new Uint8Array(16))).toBeUndefined();
});

it('notes sixteen ids that begin alike, and has room again when one of them is gone', () => {
  const table = new RemoteIds<Owner>();
  const owners = Array.from({ length: 17 }, () => new Owner());
  for (const [rest, owner] of owners.entries()) table.add(owner, entry(9, rest));
  expect(owners.map((owner, rest) => found(table, entry(9, rest)) === owner)).toEqual([...Array<boolean>(16).fill(true), false]);
  // What was not noted takes nothing with it.
  table.remove(owners[16]!);
  expect(found(table, entry(9, 15))).toBe(owners[15]);
  table.remove(owners[0]!);
  const late = new Owner();
  table.add(late, entry(9, 99));
  expect(found(table, entry(9, 99))).toBe(late);
});
