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
    const stream = (await fixture.connected()).createStream();
    await fixture.settle(stream.open(PORT));
    const sent = Uint8Array.from({ length: 100_000 }, (_, i) => (i * 13) & 0xff);
    const received = (async () => {
      expect(await stream.readSome(2)).toEqual(sent.subarray(0, 2));
      const all = await stream.readAll(sent.length - 2);
      await expect(stream.readSome()).rejects.toMatchObject({ code: 'END_OF_FILE' });
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
    const stream = (await fixture.connected()).createStream();
    await fixture.settle(stream.open(PORT));
    const text = 'x'.repeat(50_000);
    const writing = new Blob([text]).stream().pipeTo(stream.writable);
    const reading = new Response(stream.readable).text();
    await fixture.settle(writing);
    expect(await fixture.settle(reading)).toBe(text);
  });

  test('may be opened again after a refusal', async () => {
    const { device } = await fixture.attached();
    const stream = (await fixture.connected()).createStream();
    expect(await fixture.code(stream.open(7))).toBe('STOPPED');
    device.addStreamListener(7, (incoming) => void incoming.accept());
    expect(await fixture.code(stream.open(7))).toBe('OK');
  });

  test('are STOPPED by a port without a listener, and by a listener that refuses', async () => {
    const { device } = await fixture.attached();
    device.addStreamListener(6, (incoming) => incoming.refuse());
    const closed = device.addStreamListener(7, () => {});
    closed.close();
    const connection = await fixture.connected();
    for (const port of [PORT, 6, 7]) expect(await fixture.code(connection.createStream().open(port))).toBe('STOPPED');
  });

  test('are stopped by an abort: an open and a read under way, and all later calls', async () => {
    const { device } = await fixture.attached();
    device.addStreamListener(6, () => {});
    device.addStreamListener(PORT, (incoming) => void incoming.accept());
    const connection = await fixture.connected();
    const [waiting, open] = [connection.createStream(), connection.createStream()];
    await fixture.settle(open.open(PORT));
    const ended = Promise.allSettled([waiting.open(6), open.readSome()]);
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
    const streams = [connection.createStream(), connection.createStream()];
    for (const stream of streams) await fixture.settle(stream.open(PORT));
    expect(await fixture.code(connection.createStream().open(PORT))).toBe('STOPPED');
    streams[0]?.abort();
    await fixture.sim.run(1_000);
    expect(await fixture.code(connection.createStream().open(PORT))).toBe('OK');
  });
});
