/** What an attacker on the network can do: garbage, replays and changes have no effect beyond loss. */
import { describe, expect, it } from 'vitest';
import { openedStream } from '../../support/opened-stream.ts';
import { seeds } from '../../support/tiered.ts';
import { bench, equal, PORT, roundTrip, StreamPort } from './support.ts';

describe('datagrams of an attacker', () => {
  async function garbage(seed: number, count: number): Promise<void> {
    const { simulation, random, connect, device, deviceHost } = await bench({ seed });
    const session = await simulation.settle(connect());
    const destination = { address: deviceHost.addresses[0]!, port: PORT };
    const source = { address: '203.0.113.66', port: 666 };
    const firstBytes = [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x88, 0xc0, 0xe0];
    let answers = 0;
    simulation.onPacket = (packet) => {
      if (packet.destination.address === source.address) answers++;
      return undefined;
    };
    for (let i = 0; i < count; i++) {
      const data = random.bytes(random.u32() % 1500);
      if (data.length > 0 && i % 2 === 0) data[0] = firstBytes[random.u32() % firstBytes.length]!;
      simulation.inject(source, destination, data);
      if (i % 1000 === 0) await simulation.run(1);
    }
    await simulation.run(100);
    const payload = random.bytes(1000);
    const response = await simulation.settle(session.request({ method: 'POST', path: '/echo', payload }));
    expect(equal(response.payload, payload)).toBe(true);
    expect(answers).toBe(0);
    expect(device.stats()).toMatchObject({ failures: 0, sessions: 1 });
  }

  it.each(seeds(1, 2))('garbage neither stops the session nor is answered (seed %d)', (seed) => garbage(seed, 5_000));
  it.each(seeds(3, 6))('much garbage neither stops the session nor is answered (seed %d)', { tags: ['slow'] }, (seed) =>
    garbage(seed, 50_000),
  );

  async function replays(seed: number): Promise<void> {
    const { simulation, random, connect, device, client, served } = await bench({ seed });
    const seen: { source: { address: string; port: number }; destination: { address: string; port: number }; data: Uint8Array }[] = [];
    simulation.onPacket = ({ source, destination, data }) => {
      seen.push({ source, destination, data });
      return [data, data];
    };
    const job = async (): Promise<void> => {
      const session = await connect();
      const data = random.bytes(50_000);
      expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
      for (let i = 0; i < 10; i++) await session.request({ method: 'POST', path: '/echo', payload: random.bytes(10) });
      simulation.onPacket = undefined;
      for (const { source, destination, data } of [...seen, ...seen.reverse()]) simulation.inject(source, destination, data);
      await new Promise<void>((resolve) => void client.environment.clock.schedule(20_000, resolve));
      const response = await session.request({ method: 'POST', path: '/echo', payload: random.bytes(10) });
      expect(response.status).toBe(204);
    };
    await simulation.settle(job());
    expect(served.get('/echo')).toBe(11);
    expect(device.sessions.size).toBe(1);
    expect([device.stats(), client.stats()]).toMatchObject([{ failures: 0 }, { failures: 0 }]);
  }

  it.each(seeds(1, 2))('replays of everything, at once and later, change nothing (seed %d)', replays);
  it.each(seeds(3, 20))('replays of everything, at once and later, change nothing (seed %d)', { tags: ['slow'] }, replays);

  async function changes(seed: number): Promise<void> {
    const { simulation, random, connect, device, client, served } = await bench({ seed });
    simulation.onPacket = ({ data }) => {
      if (random.fraction() > 0.1) return undefined;
      const changed = data.slice();
      const kind = random.u32() % 3;
      if (kind === 0) changed[random.u32() % changed.length]! ^= 1 << (random.u32() & 7);
      else if (kind === 1) return changed.subarray(0, random.u32() % changed.length);
      else return Uint8Array.from([...changed, ...random.bytes(1 + (random.u32() % 20))]);
      return changed;
    };
    const job = async (): Promise<void> => {
      const session = await connect({ timeout: 300_000 });
      const data = random.bytes(100_000);
      expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
      for (let i = 0; i < 10; i++) {
        const payload = random.bytes(100);
        const response = await session.request({ method: 'POST', path: '/echo', payload });
        expect(equal(response.payload, payload)).toBe(true);
      }
      expect(session.isOpen).toBe(true);
    };
    await simulation.settle(job());
    expect(served.get('/echo')).toBe(10);
    expect([device.stats(), client.stats()]).toMatchObject([{ failures: 0 }, { failures: 0 }]);
  }

  it.each(seeds(1, 3))('a changed datagram counts as lost (seed %d)', changes);
  it.each(seeds(4, 30))('a changed datagram counts as lost (seed %d)', { tags: ['slow'] }, changes);

  it('a device with another key than the pinned one receives none of our data', async () => {
    const { simulation, connect, device } = await bench();
    const error = await simulation.settle(connect({ pin: '00'.repeat(32) }).catch((reason: Error) => reason));
    expect(error).toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    await simulation.run(1000);
    expect(device.sessions.size).toBe(0);
  });

  it('a device is invisible to a client that does not know its name', async () => {
    const { simulation, connect } = await bench();
    let answers = 0;
    simulation.onPacket = ({ from }) => {
      if (from === 'device') answers++;
      return undefined;
    };
    const error = await simulation.settle(connect({ name: 'device:pr-1.de-2', timeout: 5000 }).catch((reason: Error) => reason));
    expect(error).toMatchObject({ code: 'TIMEOUT' });
    expect(answers).toBe(0);
  });
});
