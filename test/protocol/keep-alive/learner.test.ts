/** What the learner finds out about known NATs, what it costs, and what it does where it cannot learn. */
import { describe, expect, test } from 'vitest';
import { seeds } from '../../support/tiered.ts';
import { Model, type ModelOptions, SERVER } from './model.ts';

const ECO = 114_000;
const BALANCED = 55_000;

function learning(options: ModelOptions, longest = ECO): Model {
  const model = new Model(options);
  model.learner.use(SERVER, longest, 0);
  return model;
}

/** Returns the interval that it settles at, as a share of the true timeout. */
function settled(options: ModelOptions, longest = ECO): number {
  const model = learning(options, longest);
  model.settle();
  expect(model.learner.report.state).toBe('learned');
  expect(model.learner.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  expect(model.open.size).toBe(0);
  return model.learner.interval! / options.timeout;
}

describe('the learner settles at 80 to 95 % of the timeout', () => {
  function settles(step: number): void {
    for (let timeout = 20_000; timeout <= 120_000; timeout += step) {
      const part = settled({ timeout });
      expect(part, `${timeout}`).toBeGreaterThanOrEqual(0.8);
      expect(part, `${timeout}`).toBeLessThanOrEqual(0.95);
    }
  }

  test('for each tenth of a second from 20 to 120 s', { tags: ['slow'] }, () => settles(100));

  test('with a loss of 15 % each way', () => {
    for (const seed of seeds(1, 50)) {
      const timeout = 20_000 + ((seed * 37_000) % 100_000);
      const part = settled({ timeout, loss: 0.15, seed });
      expect(part, `seed ${seed}`).toBeGreaterThanOrEqual(0.8);
      expect(part, `seed ${seed}`).toBeLessThanOrEqual(0.95);
    }
  });

  test('of a lasting flow, where a single exchange is kept for only 30 s (Linux)', () => {
    expect(settled({ timeout: 120_000, shortTimeout: 30_000 }) * 120).toBeGreaterThan(96);
  });

  test('with a round-trip time of 700 ms', () => {
    for (const timeout of [20_000, 60_000, 120_000]) expect(settled({ timeout, rtt: 700 })).toBeGreaterThanOrEqual(0.79);
  });
});

test('the default profile needs only 59 s, which takes one probe of at most 8 requests', () => {
  const model = learning({ timeout: 60_000 }, BALANCED);
  expect(model.settle()).toBeLessThan(30_000 + 65_000);
  expect(model.learner.interval!).toBeGreaterThanOrEqual(BALANCED);
  expect(model.learner.report).toEqual({ state: 'learned', timeout: 58_684, isAtLeast: true, losses: 0 });
  expect(model.sent).toBeLessThanOrEqual(8);
  // A longer interval is wanted.
  model.learner.use(SERVER, ECO, model.now);
  expect(model.learner.report.state).toBe('learning');
  model.settle();
  expect(model.learner.report).toMatchObject({ state: 'learned', isAtLeast: false });
});

test('a search costs at most 75 requests without loss, and no packet after it', () => {
  for (let timeout = 15_000; timeout <= 130_000; timeout += 1_900) {
    const model = learning({ timeout });
    model.settle();
    const { sent } = model;
    expect(sent).toBeLessThanOrEqual(75);
    model.run(3_600_000);
    expect(model.sent).toBe(sent);
  }
});

test('no request is sent in the first 15 s, nor without a session that needs it, nor without a station that helps', () => {
  const model = learning({ timeout: 60_000 });
  model.run(14_999);
  expect(model.sent).toBe(0);
  for (const [server, longest] of [
    [SERVER, 0],
    [null, ECO],
  ] as const) {
    model.learner.use(server, longest, model.now);
    model.run(600_000);
    expect([model.sent, model.learner.report.state, model.learner.interval]).toEqual([0, 'off', null]);
  }
});

test('a NAT with a timeout below 17 s gets a keep-alive every 10 s', () => {
  const model = learning({ timeout: 12_000 });
  model.settle();
  expect(model.learner.interval).toBe(10_000);
  expect(model.learner.report.state).toBe('learned');
});

describe('the learner learns nothing with', () => {
  test('several external addresses: no request has the answer sent to an address of another host', () => {
    const model = learning({ timeout: 60_000, addresses: ['203.0.113.7', '203.0.113.8'] });
    model.settle();
    expect([model.learner.report.state, model.learner.interval]).toEqual(['unfit', null]);
    const { sent } = model;
    // Three exchanges and one of the other socket, none with RESPONSE-PORT.
    expect(sent).toBe(4);
    model.run(3_600_000);
    expect(model.sent).toBe(sent);
    model.learner.forget(model.now);
    expect(model.learner.report.state).toBe('learning');
  });

  test('an external port below 1,024', () => {
    const model = learning({ timeout: 60_000, firstPort: 600 });
    model.settle();
    expect(model.learner.report.state).toBe('unfit');
  });

  test('a silent station: it asks again after 30 s, then less and less often, and concludes nothing', () => {
    const model = learning({ timeout: 60_000, isSilent: true });
    model.run(3_600_000);
    expect([model.learner.report.state, model.learner.interval]).toEqual(['learning', null]);
    expect(model.sent).toBeGreaterThan(9);
    expect(model.sent).toBeLessThanOrEqual(3 * 12);
    model.options.isSilent = false;
    model.settle();
    expect(model.learner.report.state).toBe('learned');
  });
});

describe('the loss of a mapping in use', () => {
  test('halves the interval at once and restarts the search; after a second loss the half stays', () => {
    const model = learning({ timeout: 60_000 }, BALANCED);
    model.settle();
    expect(model.learner.interval).toBe(55_163);
    model.options.timeout = 30_000;
    model.learner.lost(BALANCED, model.now);
    expect(model.learner.interval).toBe(25_000);
    expect(model.learner.report).toMatchObject({ state: 'learning', losses: 1 });
    model.settle();
    const learned = model.learner.interval!;
    expect(learned / 30_000).toBeGreaterThanOrEqual(0.8);
    expect(learned / 30_000).toBeLessThanOrEqual(0.95);
    model.learner.lost(learned, model.now);
    expect(model.learner.interval).toBe(Math.round(learned / 2));
    const { sent } = model;
    model.run(3_600_000);
    expect([model.sent, model.learner.interval]).toEqual([sent, Math.round(learned / 2)]);
    for (let i = 0; i < 5; i++) model.learner.lost(model.learner.interval!, model.now);
    expect(model.learner.interval).toBe(10_000);
  });

  test('more than an hour after another one is independent of it', () => {
    const model = learning({ timeout: 60_000 }, BALANCED);
    for (let i = 0; i < 3; i++) {
      model.settle();
      model.run(3_600_000);
      model.learner.lost(BALANCED, model.now);
      expect(model.learner.report).toMatchObject({ state: 'learning', losses: 1 });
    }
    model.settle();
    expect(model.learner.interval).toBe(55_163);
  });

  test('leaves half of the interval in use until the search is over', () => {
    const model = learning({ timeout: 100_000 });
    model.settle();
    const before = model.learner.interval!;
    model.learner.lost(before, model.now);
    model.run(100_000);
    expect(model.learner.interval).toBe(Math.round(before / 2));
    model.settle();
    expect(model.learner.interval).toBe(before);
  });
});

test('in another network nothing is known, and the search begins again', () => {
  const model = learning({ timeout: 120_000 });
  model.settle();
  const before = model.learner.interval!;
  model.options.timeout = 40_000;
  model.learner.forget(model.now);
  expect([model.learner.interval, model.learner.report.timeout]).toEqual([null, null]);
  model.settle();
  expect(model.learner.interval! / 40_000).toBeGreaterThanOrEqual(0.8);
  expect(model.learner.interval!).toBeLessThan(before);
});

test('a host that slept through the silence concludes nothing from a lost mapping', () => {
  const model = learning({ timeout: 60_000 }, BALANCED);
  for (let i = 0; i < 3; i++) {
    model.run(40_000 + i * 30_000);
    model.jump(200_000);
    model.run(10_000);
  }
  expect([model.learner.report.state, model.learner.interval]).toEqual(['learning', null]);
  model.settle();
  expect(model.learner.report).toMatchObject({ timeout: 58_684, isAtLeast: true });
});

test('a probe that a sleep interrupted is repeated', () => {
  const model = learning({ timeout: 60_000 }, BALANCED);
  model.run(40_000);
  expect(model.open.size).toBe(1);
  model.learner.interrupt(model.now);
  model.run(100);
  expect([model.open.size, model.learner.report.state]).toEqual([0, 'learning']);
  expect(model.settle()).toBeLessThan(66_000);
  expect(model.learner.report).toMatchObject({ state: 'learned', timeout: 58_684 });
  model.learner.interrupt(model.now);
  expect(model.learner.report.state).toBe('learned');
});

test('datagrams of others are not answers', () => {
  const model = learning({ timeout: 60_000 });
  const answer = new Uint8Array(32);
  model.run(31_000);
  model.learner.receive(answer, SERVER, 1, model.now);
  model.learner.receive(new Uint8Array(0), SERVER, 2, model.now);
  model.settle();
  expect(model.learner.report.state).toBe('learned');
});
