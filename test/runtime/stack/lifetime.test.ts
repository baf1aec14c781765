/** Hours of keep-alive, restarts, vanished peers and closing, in virtual time. */
import { describe, expect, it } from 'vitest';
import { Host } from '../../../runtime/host/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { bench, equal, NAME, PORT, roundTrip, StreamPort, startDevice } from './support.ts';

const HOUR = 3_600_000;

describe('a session', () => {
  it('stays for hours without use, at the price of its keep-alive', { tags: ['slow'] }, async () => {
    const { simulation, connect, client } = await bench();
    const session = await simulation.settle(connect());
    let datagrams = 0;
    simulation.onPacket = () => {
      datagrams++;
      return undefined;
    };
    await simulation.run(10 * HOUR);
    expect(session.isOpen).toBe(true);
    // a PING and its ACK every 25 s
    const expected = (10 * HOUR) / 25_000;
    expect(datagrams).toBeGreaterThan(1.5 * expected);
    expect(datagrams).toBeLessThan(5 * expected);
    const response = await simulation.settle(session.request({ method: 'POST', path: '/echo' }));
    expect(response.status).toBe(204);
    expect(client.stats()).toMatchObject({ failures: 0 });
  });

  it('ends with TIMEOUT when the peer vanishes', async () => {
    const { simulation, connect, deviceHost } = await bench();
    const session = await simulation.settle(connect());
    const from = simulation.now;
    deviceHost.stop();
    const reason = await simulation.settle(session.closed);
    expect(reason).toMatchObject({ code: 'TIMEOUT' });
    // 25 s and 15 times 2 s
    expect(simulation.now - from).toBeGreaterThan(45_000);
    expect(simulation.now - from).toBeLessThan(65_000);
    await expect(session.request({ method: 'POST', path: '/echo' })).rejects.toMatchObject({ code: 'NOT_CONNECTED' });
  });

  it('ends soon by Reset when the peer has restarted with the same secret', async () => {
    const resetSecret = Uint8Array.from({ length: 32 }, (_, i) => i);
    const { simulation, connect, deviceHost } = await bench({ device: { resetSecret } });
    const session = await simulation.settle(connect());
    const identity = deviceHost.crypto.generateKey();
    deviceHost.stop();
    await simulation.run(1000);
    await startDevice(simulation.host('device'), { identity, resetSecret });
    const from = simulation.now;
    const request = session.request({ method: 'POST', path: '/echo' }).catch((error: Error) => error);
    const reason = await simulation.settle(session.closed);
    expect(reason).toMatchObject({ code: 'CLOSED' });
    expect(simulation.now - from).toBeLessThan(3000);
    expect(await request).toMatchObject({ code: 'CLOSED' });
  });

  it('ends at both ends when one closes, with the reason', async () => {
    const { simulation, connect, device } = await bench();
    const session = await simulation.settle(connect());
    await simulation.run(100);
    const [accepted] = [...device.sessions];
    await simulation.settle(session.close(0, 'done'));
    expect(await simulation.settle(session.closed)).toBeNull();
    expect(await simulation.settle(accepted!.closed)).toMatchObject({ code: 'CLOSED' });
    expect(device.sessions.size).toBe(0);
  });

  it('ends at its peers when a host closes, and its port is free', async () => {
    const { simulation, connect, device, deviceHost } = await bench();
    const sessions = await simulation.settle(Promise.all([connect(), connect(), connect()]));
    // until the device has their Complete
    await simulation.run(100);
    await simulation.settle(device.close());
    for (const session of sessions) expect(await simulation.settle(session.closed)).toMatchObject({ code: 'CLOSED' });
    const socket = await deviceHost.network.bind({ port: PORT, receive: () => {} });
    expect(socket.port).toBe(PORT);
    const error = await simulation.settle(connect({ timeout: 1000 }).catch((reason: Error) => reason));
    expect(error).toMatchObject({ code: 'TIMEOUT' });
  });

  it('is refused with DEVICE_INTERNAL_ERROR above the limit of connections, and works again below it', async () => {
    const { simulation, connect, device } = await bench({ device: { limits: { connections: 2 } } });
    const sessions = await simulation.settle(Promise.all([connect(), connect()]));
    await simulation.run(1000);
    const third = connect().then((session) => session.closed);
    expect(await simulation.settle(third.catch((error: Error) => error))).toMatchObject({ code: 'DEVICE_INTERNAL_ERROR' });
    expect(device.sessions.size).toBe(2);
    await simulation.settle(sessions[0]!.close());
    await simulation.run(10_000);
    const again = await simulation.settle(connect());
    const response = await simulation.settle(again.request({ method: 'POST', path: '/echo' }));
    expect(response.status).toBe(204);
  });

  it('leaves nothing in the core after many connects', { tags: ['slow'] }, async () => {
    const { simulation, connect, device, random } = await bench({ link: { delay: 1 } });
    // more than there is room for at once, which is 64
    for (let i = 0; i < 70; i++) {
      const session = await simulation.settle(connect());
      const data = random.bytes(2000);
      const stream = await simulation.settle(openedStream(session, StreamPort.ECHO));
      expect(equal(await simulation.settle(roundTrip(stream, data)), data)).toBe(true);
      await simulation.settle(session.close());
      await simulation.run(5000);
    }
    expect(device.sessions.size).toBe(0);
    expect(device.stats()).toMatchObject({ failures: 0 });
  });
});

describe('fairness', () => {
  it('answers requests while a stream that is never read is full and another is busy', { tags: ['slow'] }, async () => {
    const { simulation, connect, random } = await bench({ link: { delay: 10, rate: 20e6 } });
    const session = await simulation.settle(connect());
    const stuck = await simulation.settle(openedStream(session, StreamPort.NEVER_READ));
    const blocked = stuck.write(random.bytes(8_000_000)).catch((error: Error) => error);
    const busy = await simulation.settle(openedStream(session, StreamPort.SINK));
    const writing = busy.write(random.bytes(4_000_000));
    await simulation.run(500);
    const times: number[] = [];
    for (let i = 0; i < 50; i++) {
      const from = simulation.now;
      const payload = random.bytes(i * 100);
      const response = await simulation.settle(session.request({ method: 'POST', path: '/echo', payload }));
      expect(equal(response.payload, payload)).toBe(true);
      times.push(simulation.now - from);
    }
    times.sort((a, b) => a - b);
    expect(times[25]).toBeLessThan(300);
    await simulation.settle(writing);
    stuck.abort();
    expect(await simulation.settle(blocked)).toMatchObject({ code: 'STOPPED' });
  });

  it('serves many clients at once', { tags: ['slow'] }, async () => {
    const { simulation, deviceHost, pin, random, device } = await bench({ device: { limits: { connections: 60, retryAbove: 60 } } });
    const work = Array.from({ length: 50 }, async (_, i) => {
      const host = simulation.host(`client ${i}`);
      const client = await Host.open(host, { identity: host.crypto.generateKey(), binds: [{ port: 0 }] });
      const session = await client.dials.connect({ address: deviceHost.addresses[i % 2]!, port: PORT, name: NAME, pin });
      const data = random.bytes(20_000);
      expect(equal(await roundTrip(await openedStream(session, StreamPort.ECHO), data), data)).toBe(true);
      await client.close();
    });
    await simulation.settle(Promise.all(work));
    expect(device.stats()).toMatchObject({ failures: 0 });
  });
});
