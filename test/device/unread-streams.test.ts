/** Streams of clients that a device does not read: what its application, its log and new clients learn. */
import { expect, test } from 'vitest';
import { ProductFixture } from '../support/fixture/products.ts';

const PORT = 5;
/** The least MaxData (PROTOCOL.md §5.4). */
const LEAST = 2 * 66_560;

test('unread streams that fill their memory are an event and a line of the log; new clients get the least credit until they are read', async () => {
  const fixture = await ProductFixture.withStation();
  const { device } = await fixture.attached();
  const events: string[] = [];
  device.onConnectionEvent((_, event) => events.push(event));
  const lines: string[] = [];
  device.setLogCallback(({ message }) => lines.push(message));
  const accepted: { readAll(): Promise<unknown> }[] = [];
  device.addStreamListener(PORT, (incoming) => {
    const stream = incoming.accept();
    accepted.push({ readAll: () => stream.readable.pipeTo(new WritableStream()) });
  });
  const connection = await fixture.connected();
  const other = await fixture.connected();
  expect(other.stats().sendCredit).toBeGreaterThan(1.5 * LEAST);
  for (let i = 0; i < 5; i++) {
    const stream = connection.openStream(PORT);
    await fixture.settle(stream.opened);
    void stream.write(new Uint8Array(200_000)).then(() => stream.close());
    await fixture.sim.run(() => accepted.length > i && connection.stats().bytesInFlight === 0);
  }
  expect(events).toEqual(['OPENED', 'OPENED', 'CRAMPED']);
  expect(lines.filter((line) => line.includes('has not read'))).toHaveLength(1);
  expect((await fixture.connected()).stats().sendCredit).toBeLessThanOrEqual(LEAST);
  await fixture.settle(Promise.all(accepted.map((stream) => stream.readAll())));
  expect(events.at(-1)).toBe('RELIEVED');
  expect((await fixture.connected()).stats().sendCredit).toBeGreaterThan(1.5 * LEAST);
});
