/** Critical losses: every pattern at the beginning, and each single datagram of a transfer. */
import { describe, expect, it } from 'vitest';
import type { SimulatedPacket } from '../../../transport/sim/index.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { slice } from '../../support/size.ts';
import { download, downloadAll, expectNoFailure, type FileBench, fileBench, KB, MB } from './support.ts';

/** Counts datagrams of both ends from 0 and drops those named by `drops`. */
function dropping(here: FileBench, drops: (index: number) => boolean): { count: number } {
  const sent = { count: 0 };
  here.simulation.onPacket = (_packet: SimulatedPacket) => (drops(sent.count++) ? 'drop' : undefined);
  return sent;
}

describe('loss of the first seven datagrams', () => {
  const patterns = Array.from({ length: 127 }, (_, i) => i + 1);

  it('lets a client connect and make a request within 20 s, whichever of them are lost', async () => {
    const late: string[] = [];
    for (const pattern of slice(patterns, 43)) {
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
  }, 120_000);
});

describe('loss of one datagram', () => {
  it('lets a transfer of 1 MiB complete, whichever it is', async () => {
    const whole = await fileBench({ files: [MB] });
    const total = dropping(whole, () => false);
    await whole.simulation.settle(downloadAll(whole));
    expect(total.count).toBeGreaterThan(900);
    const indices = Array.from({ length: total.count }, (_, i) => i);
    for (const dropped of slice(indices, 5)) {
      const here = await fileBench({ files: [MB] });
      dropping(here, (index) => index === dropped);
      const from = here.simulation.now;
      await here.simulation.settle(downloadAll(here));
      // one loss costs a retransmission, at most a second, and half of the window
      expect([dropped, here.simulation.now - from < 3000]).toEqual([dropped, true]);
      expectNoFailure(here);
      if (dropped % 50 === 0) collectGarbage();
    }
  }, 900_000);
});
