/** Cases of the QUIC interop runner about the handshake, with its parameters and names. */
import { describe, expect, it } from 'vitest';
import { decodeVersions, encodeInitiate, mac1Key, PacketType, padded } from '../../../protocol/packet/index.ts';
import { Host } from '../../../runtime/host/index.ts';
import { seeds } from '../../support/tiered.ts';
import { NAME, PORT } from '../stack/support.ts';
import { bursts, closesCleanly, download, downloadAll, expectNoFailure, fileBench, KB, simpleP2p, typesFrom } from './support.ts';

const { INITIATE, RETRY, RESPOND, COMPLETE, VERSIONS } = PacketType;
const count = (types: readonly number[], type: number) => types.filter((each) => each === type).length;

describe('interop: handshake', () => {
  it('handshake', async () => {
    const here = await fileBench();
    const job = async () => closesCleanly(here, await downloadAll(here));
    await here.simulation.settle(job());
    const [client, device] = [typesFrom(here, 'client'), typesFrom(here, 'device')];
    expect([count(client, INITIATE), count(client, COMPLETE), count(device, RESPOND), count(device, RETRY)]).toEqual([1, 1, 1, 0]);
  });

  it('longrtt', async () => {
    const here = await fileBench({ link: { ...simpleP2p, delay: 750 } });
    const job = async () => closesCleanly(here, await downloadAll(here));
    await here.simulation.settle(job());
    // the answer takes 1.5 s, the first retransmission leaves after 0.5 s
    expect(count(typesFrom(here, 'client'), INITIATE)).toBeGreaterThanOrEqual(2);
  });

  it('retry', async () => {
    const here = await fileBench({ files: [10 * KB], device: { limits: { retryAbove: 0 } } });
    const job = async () => closesCleanly(here, await downloadAll(here));
    await here.simulation.settle(job());
    const retry = here.sent.find(({ data }) => data[0] === RETRY)!;
    const token = retry.data.subarray(9, 29).join();
    const initiates = here.sent.filter(({ data }) => data[0] === INITIATE);
    // type, version, suite, source id, length, mac1, then the token behind its length
    expect(initiates.map(({ data }) => data[29])).toEqual([0, 20]);
    expect(initiates[1]!.data.subarray(30, 50).join()).toBe(token);
  });

  it('amplificationlimit', async () => {
    const here = await fileBench({ files: [5 * KB] });
    const bytes = { client: 0, device: 0 };
    let toDevice = 0;
    let isValidated = false;
    here.simulation.onPacket = ({ from, data }) => {
      if (from === 'device') {
        bytes.device += data.length;
        if (!isValidated) expect(bytes.device).toBeLessThanOrEqual(3 * bytes.client);
        return undefined;
      }
      toDevice++;
      // the runner drops 2, 3, 4, 5, 6, 7 towards the server
      if (toDevice >= 2 && toDevice <= 7) return 'drop';
      bytes.client += data.length;
      isValidated ||= data[0] === COMPLETE;
      return undefined;
    };
    const job = async () => closesCleanly(here, await downloadAll(here));
    await here.simulation.settle(job());
    expect([toDevice > 7, isValidated]).toEqual([true, true]);
  });

  const lossy = { ...bursts, loss: 0.3 };
  const corrupting = { ...bursts, corrupt: 0.3 };
  it.each(seeds(1, 1))('handshakeloss of 15 connections (seed %d)', { tags: ['slow'] }, (seed) => manyConnections(seed, lossy, 15));
  it.each(seeds(1, 1))('handshakecorruption of 15 connections (seed %d)', { tags: ['slow'] }, (seed) =>
    manyConnections(seed, corrupting, 15),
  );
  // the runner makes 50
  it.each(seeds(1, 8))('handshakeloss (seed %d)', { tags: ['slow'] }, (seed) => manyConnections(seed, lossy, 50));
  it.each(seeds(1, 8))('handshakecorruption (seed %d)', { tags: ['slow'] }, (seed) => manyConnections(seed, corrupting, 50));

  it('ipv6', async () => {
    const here = await fileBench({ files: [5 * KB, 10 * KB] });
    const job = async () => {
      const session = await here.client.dials.connect({ address: here.deviceHost.addresses[1]!, port: PORT, name: NAME, pin: here.pin });
      await Promise.all(here.files.map((size, port) => download(session, size, port)));
      await closesCleanly(here, session);
    };
    await here.simulation.settle(job());
    for (const { source, destination } of here.sent) expect([source, destination].every(({ address }) => address.includes(':'))).toBe(true);
  });

  it('versionnegotiation', { tags: ['slow'] }, async () => {
    const here = await fileBench();
    const crypto = here.clientHost.crypto;
    const source = crypto.randomBytes(8);
    const fields = { version: 0x7a, suite: 1, source, token: new Uint8Array(0), message: crypto.randomBytes(32) };
    const initiate = padded(encodeInitiate(crypto, mac1Key(crypto, NAME), fields));
    const answers: Uint8Array[] = [];
    const job = async () => {
      const socket = await here.clientHost.network.bind({ port: 0, receive: (data) => answers.push(data.slice()) });
      socket.send(initiate, 0, initiate.length, socket.path(here.deviceHost.addresses[0]!, PORT), () => {});
    };
    await here.simulation.settle(job());
    await here.simulation.run(1000);
    expect(answers.map((data) => data[0])).toEqual([VERSIONS]);
    expect(decodeVersions(answers[0]!)).toMatchObject({ destination: source, versions: Uint8Array.of(1), suites: Uint8Array.of(1) });
    // a client that is offered no supported version gives up; one that is offered the version it sent ignores that
    here.simulation.onPacket = ({ from, data }) => {
      if (from !== 'device' || data[0] !== RESPOND) return undefined;
      return Uint8Array.of(VERSIONS, ...data.subarray(1, 9), 1, 0x7a, 1, 1);
    };
    const error = await here.simulation.settle(here.connect().catch((reason: Error) => reason));
    expect(error).toMatchObject({ code: 'NOT_IMPLEMENTED' });
    here.simulation.onPacket = ({ from, data }) => {
      if (from !== 'device' || data[0] !== RESPOND) return undefined;
      return [Uint8Array.of(VERSIONS, ...data.subarray(1, 9), 1, 1, 1, 1), data];
    };
    await here.simulation.settle(downloadAll(here));
    expectNoFailure(here);
  });
});

/** `connections` one after the other, a file of 1 KB on each. */
async function manyConnections(seed: number, link: typeof bursts, connections: number): Promise<void> {
  const here = await fileBench({ seed, link });
  const job = async (): Promise<void> => {
    for (let i = 0; i < connections; i++) {
      const host = await Host.open(here.clientHost, { identity: here.clientHost.crypto.generateKey(), binds: [{ port: 0 }] });
      const session = await host.dials.connect({
        address: here.deviceHost.addresses[0]!,
        port: PORT,
        name: NAME,
        pin: here.pin,
        timeout: 60_000,
      });
      await download(session, KB, 0);
      await session.close(0);
      await host.close();
      expect(host.stats()).toMatchObject({ failures: 0 });
    }
  };
  await here.simulation.settle(job());
  expectNoFailure(here);
}
