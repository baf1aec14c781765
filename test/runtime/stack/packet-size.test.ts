/**
 * Packet sizes of the whole stack over links of the simulator: probes climb as far as the path is known to carry, and
 * no further.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import type { LinkOptions } from '../../../testing/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { type Bench, type BenchOptions, bench, StreamPort } from './support.ts';

const BYTES = 1_000_000;
/** An IPv6 packet of MTU 1,280 or 1,500 less the headers of IPv6 and UDP. */
const MIN_PAYLOAD = 1232;
const ETHERNET_PAYLOAD = 1452;

interface Upload {
  over: Bench;
  /** Sizes of the client's datagrams that were larger than any before. */
  steps: number[];
  packetSize: number;
}

/** One bulk transfer to the device; `then` may change the link after a number of bytes. */
async function upload(options: BenchOptions, bytes = BYTES, then: { after: number; link: LinkOptions } | null = null): Promise<Upload> {
  const over = await bench({ seed: 1, ...options });
  const { simulation, clientHost, deviceHost } = over;
  const steps = [0];
  simulation.onTrace = ({ from, data }) => {
    if (from === clientHost.name && data.length > steps.at(-1)!) steps.push(data.length);
  };
  const session = await simulation.settle(over.connect());
  const stream = await simulation.settle(openedStream(session, StreamPort.SINK));
  const sent = stream.write(new Uint8Array(bytes)).then(() => stream.close());
  if (then !== null) {
    await simulation.run(() => over.sunk.bytes >= then.after);
    simulation.link(clientHost, deviceHost, then.link);
  }
  await simulation.settle(sent);
  expect(over.sunk.bytes).toBe(bytes);
  return { over, steps: steps.filter((size) => size > 1200), packetSize: session.stats().packetSize! };
}

describe('packets of a bulk transfer', () => {
  it.each([0, 0.05])('climb to the MTU of Ethernet, loss %d', { tags: ['slow'] }, async (loss) => {
    const { steps, packetSize } = await upload({ link: { delay: 10, loss } });
    expect(packetSize).toBe(ETHERNET_PAYLOAD);
    expect(steps).toEqual([1232, 1392, 1452]);
  });

  it('stay below the MTU of a link of 1,280 bytes', { tags: ['slow'] }, async () => {
    const { over, packetSize } = await upload({ link: { delay: 10, mtu: MIN_PAYLOAD } }, 10 * BYTES);
    expect(packetSize).toBe(MIN_PAYLOAD);
    const { oversize, lost } = over.simulation.direction(over.clientHost, over.deviceHost).stats;
    expect([oversize, lost]).toEqual([3, 0]);
  });

  it('do not exceed the stated MTU of the links', async () => {
    const low = await upload({ link: { delay: 10 }, linkMtu: 1280 });
    expect([low.packetSize, low.steps]).toEqual([1252, [1232, 1252]]);
    const high = await upload({ link: { delay: 10 }, linkMtu: 9000 }, 4 * BYTES);
    expect([high.packetSize, high.steps]).toEqual([8972, [1232, 1392, 1452, 4096, 8192, 8972]]);
  });

  it('do not exceed the MTU of Ethernet, however large the slots are', { tags: ['slow'] }, async () => {
    const large = { maxPacketSize: 65_000, core: { memory: 8 << 20 } };
    const { steps } = await upload({ link: { delay: 10 }, device: large, client: large }, 4 * BYTES);
    expect(steps.at(-1)).toBe(ETHERNET_PAYLOAD);
  });

  it('return to the base size when the link carries less than before', { tags: ['slow'] }, async () => {
    const mtu = 1400;
    const { over, packetSize } = await upload({ link: { delay: 10 } }, 4 * BYTES, { after: BYTES, link: { delay: 10, mtu } });
    expect(packetSize).toBe(1200);
    const { oversize, passed } = over.simulation.direction(over.clientHost, over.deviceHost).stats;
    expect(oversize).toBeGreaterThanOrEqual(3);
    // Those in flight at the change, and none after.
    expect(oversize).toBeLessThan(passed / 2);
  });
});
