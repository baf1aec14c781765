/**
 * Critical losses: every pattern at the beginning, and single datagrams of a transfer.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import type { SimulatedPacket } from '../../../testing/index.ts';
import { download, downloadAll, expectNoFailure, type FileBench, fileBench, KB, MB } from './support.ts';

/** Counts datagrams of both ends from 0 and drops those named by `drops`. */
function dropping(here: FileBench, drops: (index: number) => boolean): { count: number } {
  const sent = { count: 0 };
  here.simulation.onPacket = (_packet: SimulatedPacket) => (drops(sent.count++) ? 'drop' : undefined);
  return sent;
}

describe('loss of the first seven datagrams', () => {
  const patterns = Array.from({ length: 127 }, (_, i) => i + 1);
  /** One of them is lost, or all up to one are. */
  const isQuick = (pattern: number): boolean => (pattern & (pattern - 1)) === 0 || (pattern & (pattern + 1)) === 0;

  it('lets a client connect and make a request within 20 s, when one or the first few of them are lost', () =>
    connects(patterns.filter(isQuick)));
  it('lets a client connect and make a request within 20 s, whichever of them are lost', () =>
    connects(patterns.filter((pattern) => !isQuick(pattern))));

  async function connects(lost: readonly number[]): Promise<void> {
    const late: string[] = [];
    for (const pattern of lost) {
      const here = await fileBench();
      dropping(here, (index) => index < 7 && ((pattern >> index) & 1) === 1);
      const from = here.simulation.now;
      const job = async () => {
        const session = await here.connect({ timeout: 20_000 });
        await download(session, KB, 0);
      };
      await here.simulation.settle(job());
      const time = here.simulation.now - from;
      if (time > 20_000) late.push(`${pattern.toString(2)}: ${time} ms`);
      expect(here.device.sessions.size).toBe(1);
      expectNoFailure(here);
    }
    expect(late).toEqual([]);
  }
});

describe('loss of one datagram', () => {
  it('lets a transfer of 256 KiB complete, whichever of every hundredth it is', () => completes(MB / 4, (index) => index % 100 === 0));
  it('lets a transfer of 1 MiB complete, whichever of the first 64 and of every eighth it is', () =>
    completes(MB, (index) => index < 64 || index % 8 === 0));

  async function completes(file: number, isDropped: (index: number) => boolean): Promise<void> {
    const whole = await fileBench({ files: [file] });
    const total = dropping(whole, () => false);
    await whole.simulation.settle(downloadAll(whole));
    expect(total.count).toBeGreaterThan(900 * (file / MB));
    const indices = Array.from({ length: total.count }, (_, i) => i);
    for (const dropped of indices.filter(isDropped)) {
      const here = await fileBench({ files: [file] });
      dropping(here, (index) => index === dropped);
      const from = here.simulation.now;
      await here.simulation.settle(downloadAll(here));
      // one loss costs a retransmission, at most a second, and half of the window
      expect([dropped, here.simulation.now - from < 3000]).toEqual([dropped, true]);
      expectNoFailure(here);
    }
  }
});
