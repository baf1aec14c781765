/** Critical losses: every pattern at the beginning, and each single datagram of a transfer. */
import { describe, expect } from 'vitest';
import type { SimulatedPacket } from '../../../transport/sim/index.ts';
import { tiered } from '../../support/tiered.ts';
import { download, downloadAll, expectNoFailure, type FileBench, fileBench, KB, MB } from './support.ts';

/** Counts datagrams of both ends from 0 and drops those named by `drops`. */
function dropping(here: FileBench, drops: (index: number) => boolean): { count: number } {
  const sent = { count: 0 };
  here.simulation.onPacket = (_packet: SimulatedPacket) => (drops(sent.count++) ? 'drop' : undefined);
  return sent;
}

describe('loss of the first seven datagrams', () => {
  const patterns = Array.from({ length: 127 }, (_, i) => i + 1);

  tiered(patterns, 43)('lets a client connect and make a request within 20 s: pattern %i', async (pattern) => {
    const here = await fileBench();
    dropping(here, (index) => index < 7 && ((pattern >> index) & 1) === 1);
    const from = here.simulation.now;
    const job = async () => {
      const session = await here.connect({ timeout: 20_000 });
      await download(session, KB, 0);
    };
    await here.simulation.settle(job());
    expect(here.simulation.now - from).toBeLessThanOrEqual(20_000);
    expect(here.device.sessions.size).toBe(1);
    expectNoFailure(here);
  });
});

describe('loss of one datagram', () => {
  // There are more than 900 datagrams, with the last ones of the handshake and of the close.
  tiered([...Array.from({ length: 45 }, (_, i) => 20 * i), 1, 2, 3, 4, 5], 5)(
    'lets a transfer of 1 MiB complete, whichever it is: %i',
    async (dropped) => {
      const here = await fileBench({ files: [MB] });
      const sent = dropping(here, (index) => index === dropped);
      const from = here.simulation.now;
      await here.simulation.settle(downloadAll(here));
      expect(sent.count).toBeGreaterThan(900);
      // one loss costs a retransmission, at most a second, and half of the window
      expect(here.simulation.now - from).toBeLessThan(3_000);
      expectNoFailure(here);
    },
  );
});
