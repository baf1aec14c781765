/**
 * Ids of peers: found by the whole id and its token, forgotten with their owner, and bounded where peers choose the
 * same word repeatedly.
 */
import { expect, it } from 'vitest';
import { type RemoteId, type RemoteIdOwner, RemoteIds } from '../../../protocol/endpoint/remote-ids.ts';

class Owner implements RemoteIdOwner {
  remoteIds = '';
}

/** @param word of an id, and `rest` behind it; the token is made of both */
function entry(word: number, rest: number): RemoteId {
  const id = new Uint8Array(8);
  new DataView(id.buffer).setUint32(0, word);
  new DataView(id.buffer).setUint32(4, rest);
  return { id, resetToken: new Uint8Array(16).fill(word ^ rest) };
}

const found = (table: RemoteIds<Owner>, { id, resetToken }: RemoteId): Owner | undefined => table.find(id, resetToken);

it('finds an owner by each of its ids, and not when a byte differs', () => {
  const table = new RemoteIds<Owner>();
  const [one, other] = [new Owner(), new Owner()];
  // Words of both signs: they are kept as signed numbers.
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

it('does not accept the token of one id for another id of the same owner', () => {
  const table = new RemoteIds<Owner>();
  const owner = new Owner();
  const [a, b] = [entry(5, 1), entry(5, 2)];
  for (const id of [a, b]) table.add(owner, id);
  expect(table.find(a.id, b.resetToken)).toBeUndefined();
});

it('forgets ids that the peer retired, and all ids with their owner', () => {
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

it('keeps the token of an id that is still valid, and adds no id without a token', () => {
  const table = new RemoteIds<Owner>();
  const owner = new Owner();
  const [first, second, third] = [entry(9, 1), entry(9, 2), entry(9, 3)];
  const none = new Uint8Array(16);
  table.add(owner, first);
  table.replace(owner, [{ ...first, resetToken: none }, { ...second, resetToken: none }, third]);
  expect([found(table, first), found(table, third)]).toEqual([owner, owner]);
  expect([table.find(first.id, none), table.find(second.id, none)]).toEqual([undefined, undefined]);
});

it('keeps sixteen ids with the same word, and has room again when one is removed', () => {
  const table = new RemoteIds<Owner>();
  const owners = Array.from({ length: 17 }, () => new Owner());
  for (const [rest, owner] of owners.entries()) table.add(owner, entry(9, rest));
  expect(owners.map((owner, rest) => found(table, entry(9, rest)) === owner)).toEqual([...Array<boolean>(16).fill(true), false]);
  // Removing an id that was not kept removes nothing else.
  table.remove(owners[16]!);
  expect(found(table, entry(9, 15))).toBe(owners[15]);
  table.remove(owners[0]!);
  const late = new Owner();
  table.add(late, entry(9, 99));
  expect(found(table, entry(9, 99))).toBe(late);
});
