/**
 * The matrix of direct paths by the NATs of both ends: the decisions of both, over plain simulated sockets. The same
 * cells as `npm run bench -- nat`.
 */
import { describe, expect, it } from 'vitest';
import { cells, expected, nameOf, reasonOf, shortfalls, tryCell } from '../../../bench/nat/matrix.ts';
import { Scene } from '../../../bench/nat/scene.ts';
import type { NatKind } from '../../support/nat-kinds.ts';
import { seeds } from '../../support/tiered.ts';

/** PROTOCOL.md §6: packets that a rendezvous may send over the relay. */
const MAX_RELAYED = 4_096;

/** The cells that depend on several answers and on the order of packets. */
const LOSSY: readonly NatKind[] = ['port', 'sequential', 'v6-firewall'];

describe('decisions', () => matrix(seeds(1, 1)));
describe('decisions, with further seeds', { tags: ['slow'] }, () => matrix(seeds(2, 6), seeds(2, 61)));

/** @param ofChance for cells where not every attempt has to succeed; with few of them percentiles depend on chance */
function matrix(numbers: readonly number[], ofChance = numbers): void {
  const isSample = ofChance.length === 1;

  it.each(cells.map((cell) => [nameOf(cell), cell] as const))('%s', async (_, cell) => {
    const { atLeast = 0 } = expected(cell);
    const isChance = atLeast > 0 && atLeast < 1;
    const result = await tryCell(cell, isChance ? ofChance : numbers);
    expect(shortfalls(cell, result, 0, isSample)).toEqual([]);
    expect(result.relayed).toBeLessThanOrEqual(MAX_RELAYED);
    if (result.share === 0) expect([...result.reasons]).toEqual([reasonOf(cell)]);
  });

  const sequential = cells.filter((cell) => expected(cell, 5).atLeast === 0.9);

  it.each(sequential.map((cell) => [nameOf(cell), cell] as const))('%s, beside 5 foreign flows a second', async (_, cell) => {
    expect(shortfalls(cell, await tryCell(cell, numbers, { foreign: 5 }), 5, isSample)).toEqual([]);
  });

  const lossy = cells.filter(({ client, device }) => [client, device].every((kind) => LOSSY.includes(kind)));

  it.each(lossy.map((cell) => [nameOf(cell), cell] as const))('%s, where a twentieth of all datagrams is lost', async (_, cell) => {
    const { share, times } = await tryCell(cell, numbers, { loss: 0.05 });
    expect(share).toBeGreaterThanOrEqual(0.95);
    expect(times.p50).toBeLessThan(1_000);
  });
}

it.each([
  ['random', 'port'],
  ['port', 'random'],
] as const)(
  '%s × %s: later connections of the client are direct too, as is another client with its key',
  { tags: ['slow'] },
  async (client, device) => {
    const scene = new Scene({ client, device, seed: 1 });
    try {
      const results = [await scene.run()];
      for (const pause of [5_000, 100_000, 220_000]) results.push(await scene.again(pause));
      results.push(await scene.again(5_000, true));
      expect(results.map(({ time, why }) => why ?? time! < 15_000)).toEqual([true, true, true, true, true]);
    } finally {
      scene.close();
    }
  },
);

it('two stateful firewalls for IPv6 do not prevent a direct path', async () => {
  const { over } = await tryCell({ client: 'v6-firewall', device: 'v6-firewall' }, [1]);
  expect([...over]).toEqual(['ipv6']);
});
