/** A misbehaving authenticated peer: it may lose its own session and do no other harm. */
import { describe, expect, it } from 'vitest';
import { BERT, blockValue } from '../../../protocol/coap/block.ts';
import { encodeMessage } from '../../../protocol/coap/index.ts';
import { OptionNumber, uintOptionOf } from '../../../protocol/coap/options.ts';
import { seededBytes } from '../../support/crypto.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { seeds } from '../../support/tiered.ts';
import { acceptedSession, deviceTarget, type Pair, pair, testRouter } from './support.ts';

/** A hostile session and, from another client of the same host, an honest one. */
async function besieged(seed = 1) {
  const both = await pair({ seed, device: { maxRequests: 8 } });
  const victim = await acceptedSession(both);
  victim.router = testRouter(both.deviceEnvironment);
  const decent = await both.simulation.settle(both.client.dials.connect(deviceTarget(both)));
  await both.simulation.run(() => both.accepted.length === 2);
  both.accepted[1]!.router = testRouter(both.deviceEnvironment);
  return { ...both, victim, decent };
}

async function expectUnharmed(both: Pair & { decent: { request: (r: { method: 'GET'; path: string }) => Promise<{ status: number }> } }) {
  expect((await both.simulation.settle(both.decent.request({ method: 'GET', path: '/hello' }))).status).toBe(205);
  expect(both.errors).toEqual([]);
  expect(both.device.stats()).toMatchObject({ failures: 0 });
}

describe('a hostile peer', () => {
  async function sendsRandom(seed: number): Promise<void> {
    const both = await besieged(seed);
    const random = seededBytes(seed);
    for (let i = 0; i < 2000; i++) {
      const length = random(1)[0]! < 200 ? random(1)[0]! : 60_000;
      if (both.session.isOpen) both.session.connection.messages.send(random(length));
      if (i % 50 === 0) await both.simulation.run(20);
    }
    await both.simulation.run(60_000);
    await expectUnharmed(both);
  }

  it.each(seeds(1, 1))('that sends random messages (seed %d)', sendsRandom);
  it.each(seeds(2, 20))('that sends random messages (seed %d)', { tags: ['slow'] }, sendsRandom);

  async function sendsMutated(seed: number): Promise<void> {
    const both = await besieged(seed);
    const random = seededBytes(seed);
    const options = [{ number: 11, value: new TextEncoder().encode('hello') }];
    for (let i = 0; i < 2000; i++) {
      const message = encodeMessage({ code: 1 + (i % 4), token: random(i % 9), options, payload: random(i % 7) });
      message[random(1)[0]! % message.length] = random(1)[0]!;
      if (both.session.isOpen) both.session.connection.messages.send(message);
      if (i % 50 === 0) await both.simulation.run(20);
    }
    await both.simulation.run(60_000);
    await expectUnharmed(both);
  }

  it.each(seeds(1, 1))('that sends mutated requests (seed %d)', sendsMutated);
  it.each(seeds(2, 20))('that sends mutated requests (seed %d)', { tags: ['slow'] }, sendsMutated);

  it('that opens streams without end, and never reads them', { tags: ['slow'] }, async () => {
    const both = await besieged();
    let offered = 0;
    both.victim.onStream = () => {
      offered++;
    };
    const opens = Array.from({ length: 3000 }, (_, port) =>
      openedStream(both.session, port).catch((error: { code: string }) => error.code),
    );
    await both.simulation.run(1000);
    expect(offered).toBeGreaterThan(0);
    await expectUnharmed(both);
    await both.simulation.settle(both.session.close());
    expect((await both.simulation.settle(Promise.all(opens))).every((code) => code === 'STOPPED')).toBe(true);
  });

  it('that floods with requests that are never answered gets 5.03 and no memory', { tags: ['slow'] }, async () => {
    const both = await besieged();
    const requests = Array.from({ length: 1000 }, () => both.session.request({ method: 'GET', path: '/never', timeout: 5000 }));
    const outcomes = await both.simulation.settle(Promise.allSettled(requests));
    const refused = outcomes.filter((outcome) => outcome.status === 'fulfilled' && outcome.value.status === 503).length;
    expect(refused).toBe(992);
    expect(both.victim.stats()).toMatchObject({ openRequests: 8 });
    await expectUnharmed(both);
  });

  it('that begins bodies in blocks and ends none gets a quarter of their capacity, before it is authorized', {
    tags: ['slow'],
  }, async () => {
    const both = await besieged();
    const payload = new Uint8Array(65_536);
    for (let token = 1; token <= 9; token++) {
      for (let number = 0; number < 9; number++) {
        const options = [
          { number: OptionNumber.URI_PATH, value: new TextEncoder().encode('echo') },
          uintOptionOf(OptionNumber.BLOCK1, blockValue({ number: 64 * number, more: true, exponent: BERT })),
        ];
        both.session.connection.messages.send(encodeMessage({ code: 2, token: Uint8Array.of(token), options, payload }));
        // Ensures that it was sent, and answered.
        await both.simulation.settle(both.session.request({ method: 'GET', path: '/hello' }));
      }
    }
    const large = { method: 'POST', path: '/echo', payload: new Uint8Array(1 << 20) } as const;
    expect((await both.simulation.settle(both.session.request(large))).status).toBe(503);
    const others = await both.simulation.settle(Promise.all([1, 2, 3, 4].map(() => both.decent.request(large))));
    expect(others.map(({ status, payload: echoed }) => [status, echoed.length])).toEqual(Array(4).fill([204, 1 << 20]));
    await expectUnharmed(both);
    // Each is discarded 30 s after its last block.
    await both.simulation.run(31_000);
    expect((await both.simulation.settle(both.session.request(large))).status).toBe(204);
  });

  it('that floods with datagrams', async () => {
    const both = await besieged();
    let seen = 0;
    both.victim.onDatagram = () => {
      seen++;
    };
    for (let i = 0; i < 2000; i++) {
      both.session.datagrams.send(new Uint8Array(1000));
      if (i % 100 === 0) await both.simulation.run(5);
    }
    await both.simulation.run(1000);
    expect(seen).toBeGreaterThan(0);
    await expectUnharmed(both);
  });
});
