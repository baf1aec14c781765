/** The checklist: which pair is next, and which answers still count. */
import { expect, test } from 'vitest';
import { Checklist } from '../../../protocol/rendezvous/checklist.ts';
import { Lists } from '../../../protocol/rendezvous/lists.ts';
import { at, complete, PEER, peerList } from './ends.ts';

test.each([
  ['independent', 1],
  ['sequential', 3],
] as const)('behind our own NAT with %s mapping, the pair at port %i is opened first', (mapping, port) => {
  const lists = new Lists('client', 0, 0);
  lists.setLocal(complete(undefined, { mapping }), 0);
  lists.setRemote(peerList([], { nat: { mapping: 'independent' } }), 0);
  const checklist = new Checklist();
  for (const [index, kind] of (['host', 'predicted', 'reflexive'] as const).entries()) checklist.add(kind, at(PEER, index + 1), 0, 3);
  expect(checklist.due(lists, 0)?.remote.port).toBe(port);
});

test('answers to the last 512 packets count, once each', () => {
  const checklist = new Checklist();
  const pair = checklist.add('host', at(PEER, 1), 0, 3)!;
  for (let packet = 0; packet <= 512; packet++) checklist.begin(`${packet}`, pair, packet);
  expect(['0', '1', '512'].map((id) => checklist.pairOf(id))).toEqual([null, pair, pair]);
  expect([checklist.answer('1', 51), checklist.answer('2', 90), pair.rtt]).toEqual([true, false, 50]);
  expect(checklist.pairOf('1')).toBeNull();
});
