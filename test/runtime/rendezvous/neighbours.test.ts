/**
 * Homes whose boxes accept UDP from outside themselves, like Linux masquerading without a firewall, and are few routers
 * apart: an opener that goes too far reaches the other box before that one has opened, and the end behind it gets
 * another port.
 */
import { describe, expect, it } from 'vitest';
import { runScene } from '../../../bench/nat/scene.ts';
import { seeds } from '../../support/tiered.ts';

/** @param apart routers between the boxes */
const near = (apart: number, relayDelay: number, seed: number) => {
  const box = (hops: number) => ({ inbound: 'claim', hops }) as const;
  const boxes = { client: box(Math.floor(apart / 2)), device: box(Math.ceil(apart / 2)) };
  return runScene({ client: 'port', device: 'port', seed, relayDelay, boxes });
};

describe('two boxes that claim', () => {
  const cells = [1, 2, 3, 4, 5, 6].flatMap((apart) => [5, 50, 200].map((relayDelay) => ({ apart, relayDelay })));
  const becomeDirect =
    (numbers: readonly number[]) =>
    async ({ apart, relayDelay }: (typeof cells)[number]): Promise<void> => {
      for (const seed of numbers) expect(await near(apart, relayDelay, seed)).toMatchObject({ why: null, path: { kind: 'udp' } });
    };
  it.each(cells)('$apart routers apart become direct, with $relayDelay ms over the relay', becomeDirect(seeds(1, 2)));
  it.each(cells)(
    '$apart routers apart become direct, with $relayDelay ms over the relay, with further seeds',
    { tags: ['slow'] },
    becomeDirect(seeds(3, 12)),
  );

  it('next to each other stay relayed and report it: no hop limit ends between them', async () => {
    expect(await near(0, 200, 1)).toMatchObject({ time: null, why: 'NO_ANSWER' });
  });
});
