/** A client or a device that changes its uplink or sleeps, in virtual time: what is under way goes on (PROTOCOL.md §6). */
import { afterAll, describe, expect, test } from 'vitest';
import { HomesFixture, Transfer } from '../support/fixture/homes.ts';
import { Uplinks } from '../support/fixture/uplinks.ts';

/** ms from a change to its notice at most: a look each second. */
const NOTICE = 1_000;
/** ms of stall from the notice on (issue: p95). */
const STALL = 1_000;

const stalls: Record<string, number[]> = {};

afterAll(() => {
  if (process.env.SVC_TEST_FIGURES === undefined) return;
  for (const [what, values] of Object.entries(stalls)) {
    values.sort((a, b) => a - b);
    const at = (share: number): string => values[Math.min(values.length - 1, Math.floor(share * values.length))]!.toFixed(0);
    process.stdout.write(`${what}: n ${values.length}, p50 ${at(0.5)}, p95 ${at(0.95)}, most ${at(1)} ms\n`);
  }
});

function note(what: string, stall: number): number {
  (stalls[what] ??= []).push(stall);
  return stall;
}

describe.each(['client', 'device'] as const)('a %s that goes from Wi-Fi to phone to cable', (side) => {
  const cells = [true, false].flatMap((isDirect) => [true, false].map((up) => [isDirect ? 'direct' : 'relayed', up ? 'to' : 'from'] as const));
  test.each(cells)('under a %s transfer %s the device', async (way, direction) => {
    const fixture = await HomesFixture.open({}, { link: { delay: 20 } });
    const uplinks = new Uplinks(fixture, side);
    const connection = way === 'direct' ? await fixture.direct() : await fixture.relayed({ Rendezvous: false });
    await fixture.sim.run(3_000);
    const transfer = await Transfer.begin(fixture, connection, { bytes: 1_000_000, pace: 20, up: direction === 'to' });
    for (const uplink of ['phone', 'cable', 'wifi'] as const) {
      await fixture.sim.run(1_500 + 137 * uplink.length);
      const since = fixture.sim.now;
      uplinks.use(uplink);
      await fixture.sim.run(4_000);
      expect(note(`${side} ${way} ${direction}`, transfer.stall(since)), uplink).toBeLessThan(NOTICE + STALL);
    }
    await transfer.end();
    expect(fixture.clientEvents).not.toContain('CLOSED');
  });
});
