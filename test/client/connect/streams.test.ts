/** Byte streams over a relayed connection, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { ProductFixture } from '../../support/fixture/products.ts';

let fixture: ProductFixture;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
});

describe('streams', () => {
  const PORT = 5;

  /** A device that echoes. */
  async function echo() {
    const under = await fixture.attached();
    under.device.addStreamListener(PORT, async (incoming) => {
      const stream = incoming.accept();
      await stream.readable.pipeTo(stream.writable);
    });
    return under;
  }

  test('carry bytes both ways, and the end', { tags: ['slow'] }, async () => {
    await echo();
    const stream = (await fixture.connected()).openStream(PORT);
    await fixture.settle(stream.opened);
    const sent = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 13) & 0xff);
    const received = (async () => {
      expect(await stream.read(2)).toEqual(sent.subarray(0, 2));
      const all = await stream.readAll(sent.length - 2);
      await expect(stream.read()).rejects.toMatchObject({ code: 'END_OF_FILE' });
      return all;
    })();
    await fixture.settle(stream.write(sent));
    await fixture.settle(stream.close());
    expect(Buffer.compare(await fixture.settle(received), sent.subarray(2))).toBe(0);
    expect(await fixture.code(stream.write(sent))).toBe('CLOSED');
    expect(stream.stats()).toMatchObject({ bytesRead: sent.length, bytesWritten: sent.length });
  });

  test('work as WHATWG streams', async () => {
    await echo();
    const stream = (await fixture.connected()).openStream(PORT);
    await fixture.settle(stream.opened);
    const text = 'x'.repeat(50_000);
    const writing = new Blob([text]).stream().pipeTo(stream.writable);
    const reading = new Response(stream.readable).text();
    await fixture.settle(writing);
    expect(await fixture.settle(reading)).toBe(text);
  });

  test('are opened when the device accepts them', async () => {
    const { device } = await fixture.attached();
    const connection = await fixture.connected();
    const { clock } = fixture.sim.host('clock');
    device.addStreamListener(8, (incoming) => void clock.schedule(500, () => incoming.accept()));
    const began = fixture.sim.now;
    await fixture.settle(connection.openStream(8).opened);
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(500);
  });

  test('may be opened to a port that refused one before', async () => {
    const { device } = await fixture.attached();
    const connection = await fixture.connected();
    expect(await fixture.code(connection.openStream(7).opened)).toBe('STOPPED');
    device.addStreamListener(7, (incoming) => void incoming.accept());
    expect(await fixture.code(connection.openStream(7).opened)).toBe('OK');
  });

  test('are STOPPED by a port without a listener, and by a listener that refuses', async () => {
    const { device } = await fixture.attached();
    device.addStreamListener(6, (incoming) => incoming.refuse());
    const closed = device.addStreamListener(7, () => {});
    closed.close();
    const connection = await fixture.connected();
    for (const port of [PORT, 6, 7]) expect(await fixture.code(connection.openStream(port).opened)).toBe('STOPPED');
  });

  test('are stopped by an abort: an open and a read under way, and all later calls', async () => {
    const { device } = await fixture.attached();
    device.addStreamListener(6, () => {});
    device.addStreamListener(PORT, (incoming) => void incoming.accept());
    const connection = await fixture.connected();
    const [waiting, open] = [connection.openStream(6), connection.openStream(PORT)];
    await fixture.settle(open.opened);
    const ended = Promise.allSettled([waiting.opened, open.read()]);
    await fixture.sim.run(1_000);
    for (const stream of [waiting, open]) stream.abort();
    const stopped = { status: 'rejected', reason: expect.objectContaining({ code: 'STOPPED' }) };
    expect(await fixture.settle(ended)).toEqual([stopped, stopped]);
    for (const stream of [waiting, open]) expect(await fixture.code(stream.write('x'))).toBe('STOPPED');
  });

  test('above the limit are refused, and one that ends frees a slot', { tags: ['slow'] }, async () => {
    const { device } = await echo();
    device.limitStreams(2);
    const connection = await fixture.connected();
    const streams = [connection.openStream(PORT), connection.openStream(PORT)];
    for (const stream of streams) await fixture.settle(stream.opened);
    expect(await fixture.code(connection.openStream(PORT).opened)).toBe('STOPPED');
    streams[0]?.abort();
    await fixture.sim.run(1_000);
    expect(await fixture.code(connection.openStream(PORT).opened)).toBe('OK');
  });
});
