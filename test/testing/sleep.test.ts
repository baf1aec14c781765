/**
 * Clocks that jump: a host that sleeps, with a monotonic clock that stops or runs on, and one whose wall clock is set.
 */
import { describe, expect, it } from 'vitest';
import { type SimulatedHost, Simulation } from '../../testing/index.ts';
import { party } from './nat-support.ts';

const noop = () => {};
const START = 1_000_000;

function scene(clockRunsAsleep = false) {
  const simulation = new Simulation({ wallTime: START });
  const host = simulation.host('laptop', { clockRunsAsleep });
  const other = simulation.host('station');
  const seen: string[] = [];
  const note = (name: string) => () => seen.push(`${name} ${simulation.now} ${host.clock.now()}`);
  const at = (time: number, run: () => void) => void other.clock.schedule(time - simulation.now, run);
  return { simulation, host, other, seen, note, at };
}

describe('a host that sleeps', () => {
  it('has timers with their remaining time, and a monotonic clock that stopped', async () => {
    const { simulation, host, seen, note, at } = scene();
    host.clock.schedule(50, note('before'));
    host.clock.schedule(150, note('during'));
    host.clock.schedule(150, note('too'));
    host.clock.schedule(2000, note('after'));
    at(100, () => host.sleep(1000));
    at(600, () => seen.push(`asleep ${host.clock.now()} ${host.clock.wallTime() - START}`));
    await simulation.run();
    expect(seen).toEqual(['before 50 50', 'asleep 100 600', 'during 1150 150', 'too 1150 150', 'after 3000 2000']);
    expect(host.clock.wallTime() - START).toBe(3000);
  });

  it('finds its timers overdue where the monotonic clock runs on', async () => {
    const { simulation, host, seen, note, at } = scene(true);
    host.clock.schedule(150, note('during'));
    host.clock.schedule(120, note('earlier'));
    host.clock.schedule(2000, note('after'));
    at(100, () => host.sleep(1000));
    await simulation.run();
    expect(seen).toEqual(['earlier 1100 1100', 'during 1100 1100', 'after 2000 2000']);
  });

  it('sleeps again and again, until it is woken, and longer when a sleep is extended', async () => {
    const { simulation, host, seen, note, at } = scene();
    host.clock.schedule(250, note('timer'));
    at(100, () => host.sleep());
    at(200, () => host.wake());
    at(250, () => host.sleep(50));
    at(290, () => host.sleep(100));
    at(400, () => host.wake());
    await simulation.run();
    expect(seen).toEqual(['timer 490 250']);
  });

  it('runs deferred callbacks, and those scheduled meanwhile, when it wakes, and no cancelled ones', async () => {
    const { simulation, host, seen, note, at } = scene();
    const cancels: (() => void)[] = [];
    at(100, () => {
      host.clock.defer(note('deferred'));
      host.clock.schedule(10, note('timer'));
      cancels.push(host.clock.schedule(10, note('cancelled asleep')), host.clock.schedule(10, note('cancelled awake')));
      host.sleep(1000);
      host.clock.soon(note('soon'));
    });
    at(500, () => cancels[0]!());
    at(1105, () => cancels[1]!());
    await simulation.run();
    expect(seen).toEqual(['deferred 1100 100', 'soon 1100 100', 'timer 1110 110']);
  });

  it('neither sends nor receives datagrams', async () => {
    const { simulation, host, other } = scene();
    const [here, there] = [party(host, 1), party(other, 1)];
    there.send(1, host.addresses[0]!, 1);
    host.sleep(1000);
    here.send(2, other.addresses[0]!, 1);
    await simulation.run(1001);
    there.send(3, host.addresses[0]!, 1);
    await simulation.run();
    expect([here.got.map((text) => text[0]), there.got]).toEqual([['3'], []]);
  });

  it('stops in its sleep, and its successor is awake', async () => {
    const { simulation, host, seen, note } = scene();
    host.clock.schedule(10, note('timer'));
    host.sleep(100);
    host.stop();
    host.wake();
    expect(simulation.host('laptop').asleep).toBe(false);
    await simulation.run();
    expect(seen).toEqual([]);
  });

  it('ends like any other host when time has rounding errors', async () => {
    const { simulation, host } = scene();
    let fired = 0;
    const tick = (): void => {
      fired++;
      if (fired < 1000) host.clock.schedule(0.1, tick);
    };
    host.clock.schedule(0.1, tick);
    for (let i = 0; i < 20; i++) {
      await simulation.run(3.7);
      host.sleep(1.3);
    }
    await simulation.run();
    expect([fired, host.clock.now()]).toEqual([1000, expect.closeTo(100, 5)]);
  });
});

describe('WebSockets of a host that sleeps', () => {
  async function pipe(simulation: Simulation, opener: SimulatedHost, acceptor: SimulatedHost) {
    const got: string[] = [];
    const accepted = new Promise<import('../../testing/index.ts').MessagePipe>((resolve) => {
      const accept = (end: Parameters<typeof resolve>[0]) => {
        resolve(end);
        return { receive: (message: Uint8Array) => got.push(`station ${message[0]}`), closed: () => got.push('station closed') };
      };
      acceptor.listenWebSocket({ port: 80, protocol: 'p', accept });
    });
    const handlers = { receive: (message: Uint8Array) => got.push(`laptop ${message[0]}`), closed: () => got.push('laptop closed') };
    const end = await simulation.settle(
      opener.network.openWebSocket!({ url: `ws://${acceptor.name}/`, protocol: 'p', timeout: 1000, ...handlers }),
    );
    return { got, end, far: await accepted };
  }

  it('hold messages to it until it wakes', async () => {
    const { simulation, host, other } = scene();
    const { got, end, far } = await pipe(simulation, host, other);
    let sent = 0;
    host.sleep(60_000);
    for (const value of [1, 2]) far.send(Uint8Array.of(value), () => sent++);
    await simulation.run(59_000);
    expect([got, sent]).toEqual([[], 2]);
    await simulation.run(1010);
    expect(got).toEqual(['laptop 1', 'laptop 2']);
    end.send(Uint8Array.of(3), noop);
    await simulation.run();
    expect(got).toEqual(['laptop 1', 'laptop 2', 'station 3']);
  });

  it('report their end to it when it wakes', async () => {
    const { simulation, host, other } = scene();
    const { got, far } = await pipe(simulation, host, other);
    host.sleep(60_000);
    far.close(1001);
    await simulation.run(59_000);
    expect(got).toEqual([]);
    await simulation.run(1010);
    expect(got).toEqual(['laptop closed']);
  });

  it('end for the other end after a quarter of an hour, and are reset when the sleeper sends', async () => {
    const { simulation, host, other } = scene();
    const { got, end, far } = await pipe(simulation, host, other);
    host.sleep(3_600_000);
    far.send(Uint8Array.of(1), noop);
    await simulation.run(3_599_000);
    expect(got).toEqual(['station closed']);
    await simulation.run(2000);
    expect(got).toEqual(['station closed']);
    end.send(Uint8Array.of(2), noop);
    await simulation.run();
    expect(got).toEqual(['station closed', 'laptop closed']);
  });

  it('keep its unsent messages', async () => {
    const { simulation, host, other } = scene();
    simulation.link(host, other, { delay: 5, rate: 80_000 });
    const { got, end } = await pipe(simulation, host, other);
    for (let i = 0; i < 30; i++) end.send(new Uint8Array(1000).fill(i), noop);
    await simulation.run(500);
    host.sleep(60_000);
    await simulation.run(59_000);
    const early = got.length;
    await simulation.run();
    expect([early < 20, got.length]).toEqual([true, 30]);
  });

  it('are cut in its sleep, which it learns when it wakes', async () => {
    const { simulation, host, other } = scene();
    const { got } = await pipe(simulation, host, other);
    host.sleep(1000);
    simulation.pipes(host)[0]!.cut();
    expect(got).toEqual(['station closed']);
    await simulation.run();
    expect(got).toEqual(['station closed', 'laptop closed']);
  });
});

describe('a wall clock', () => {
  it('is set and continues from there, without effect on timers', async () => {
    const { simulation, host, seen, note } = scene();
    host.clock.schedule(100, note('timer'));
    host.setWallTime(START + 31_536_000_000);
    await simulation.run(200);
    expect([seen, host.clock.wallTime()]).toEqual([['timer 100 100'], START + 31_536_000_200]);
    host.setWallTime(START);
    host.sleep(1000);
    await simulation.run(1000);
    expect([host.clock.wallTime(), host.clock.now()]).toEqual([START + 1000, 200]);
  });
});

it('after a sleep its clock advances for a wait shorter than the resolution of simulated time', async () => {
  const { simulation, host } = scene();
  await simulation.run(100.3);
  host.sleep(1_000_000);
  await simulation.run(1_000_000);
  const due = host.clock.now() + 1e-12;
  let turns = 0;
  const wait = (): void => {
    const left = due - host.clock.now();
    if (left > 0 && ++turns < 100) host.clock.schedule(left, wait);
  };
  wait();
  await simulation.run(1);
  expect([host.clock.now() >= due, turns]).toEqual([true, 1]);
});
