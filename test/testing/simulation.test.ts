/** The simulator: delivery, intervention, virtual time, and the same run from the same seed. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { BoundSocket } from '../../platform/environment.ts';
import type { Path } from '../../protocol/path.ts';
import { type SimulatedHost, Simulation } from '../../testing/index.ts';
import { seeds } from '../support/tiered.ts';

const noRelease = () => {};

interface Peer {
  host: SimulatedHost;
  socket: BoundSocket;
  received: { time: number; data: Uint8Array; path: Path }[];
}

async function peer(
  simulation: Simulation,
  name: string,
  options: { addresses?: string[]; port?: number; local?: boolean } = {},
): Promise<Peer> {
  const host = simulation.host(name, options.addresses === undefined ? {} : { addresses: options.addresses });
  const received: Peer['received'] = [];
  const socket = await host.network.bind({
    port: options.port ?? 4433,
    local: options.local ?? false,
    receive: (data, path) => received.push({ time: simulation.now, data: data.slice(), path }),
  });
  return { host, socket, received };
}

async function pair(simulation = new Simulation()): Promise<[Peer, Peer]> {
  return [await peer(simulation, 'a'), await peer(simulation, 'b')];
}

function send(from: Peer, to: Peer, data: Uint8Array, family = 0): void {
  from.socket.send(data, 0, data.length, from.socket.path(to.host.addresses[family]!, to.socket.port), noRelease);
}

let simulation: Simulation;
beforeEach(() => {
  simulation = new Simulation();
});

describe('simulated network', () => {
  it('delivers a copy after the delay of the link, with the path back', async () => {
    const simulation = new Simulation({ link: { delay: 20 } });
    const [a, b] = await pair(simulation);
    const data = Uint8Array.of(1, 2, 3, 4);
    a.socket.send(data, 1, 2, a.socket.path(b.host.addresses[0]!, 4433), noRelease);
    data.fill(9);
    await simulation.run();
    expect(b.received).toHaveLength(1);
    expect(b.received[0]).toMatchObject({ time: 20, data: Uint8Array.of(2, 3), path: { address: a.host.addresses[0], port: 4433 } });
    b.socket.send(Uint8Array.of(5), 0, 1, b.received[0]!.path, noRelease);
    await simulation.run();
    expect(a.received.map(({ time }) => time)).toEqual([40]);
    expect(a.received[0]!.path).toBe(a.socket.path(b.host.addresses[0]!, 4433));
  });

  it('carries IPv4 and IPv6 and picks the source address of the family', async () => {
    const [a, b] = await pair(simulation);
    send(a, b, Uint8Array.of(4), 0);
    send(a, b, Uint8Array.of(6), 1);
    await simulation.run();
    expect(b.received.map(({ path }) => path.address)).toEqual(a.host.addresses);
    expect(b.received.map(({ path }) => path.key)).toEqual(['udp:0:10.0.1.1:4433', 'udp:0:[fd00:0:0:1::1]:4433']);
  });

  it('reaches its own host over loopback, without the loss of links', async () => {
    const simulation = new Simulation({ link: { loss: 1 } });
    const a = await peer(simulation, 'a');
    for (const address of ['127.0.0.1', '::1', a.host.addresses[0]!])
      a.socket.send(new Uint8Array(1), 0, 1, a.socket.path(address, 4433), noRelease);
    await simulation.run();
    expect(a.received.map(({ path }) => path.address)).toEqual(['127.0.0.1', '::1', a.host.addresses[0]]);
  });

  it('calls local a datagram to a local socket from loopback, link-local or an own prefix', async () => {
    const device = await peer(simulation, 'device', { addresses: ['192.168.1.5/24', 'fe80::5/64'], local: true });
    const global = await device.host.network.bind({ port: 0, receive: noRelease });
    for (const [address, local] of [
      ['127.0.0.1', true],
      ['192.168.1.77', true],
      ['fe80::7', true],
      ['192.168.2.77', false],
      ['2001:db8::1', false],
    ] as const) {
      expect([address, device.socket.path(address, 1).local]).toEqual([address, local]);
      expect([address, global.path(address, 1).local]).toEqual([address, false]);
    }
  });

  it('assigns ports and refuses invalid binds', async () => {
    const a = await peer(simulation, 'a');
    const bind = (port: number, host?: string) =>
      a.host.network.bind({ port, receive: noRelease, ...(host === undefined ? {} : { host }) });
    const [first, second] = [await bind(0), await bind(0)];
    expect(first.port).toBeGreaterThan(1023);
    expect(second.port).not.toBe(first.port);
    expect(second.index).not.toBe(first.index);
    await expect(bind(4433)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    await expect(bind(4433, a.host.addresses[0])).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    await expect(bind(70_000)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(bind(1, '8.8.8.8')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    a.socket.close();
    a.socket.close();
    expect((await bind(4433, a.host.addresses[0])).port).toBe(4433);
    expect((await bind(4433, '127.0.0.1')).port).toBe(4433);
    expect(() => first.path('localhost', 1)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(() => first.path('127.0.0.1', 0)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('resolves names of hosts and numeric addresses', async () => {
    const a = simulation.host('a');
    const b = simulation.host('station.example', { addresses: ['198.51.100.1/24', '2001:DB8:0:0::1/64'] });
    expect(await a.network.resolve('station.example')).toEqual(['198.51.100.1', '2001:db8::1']);
    expect(await a.network.resolve('::FFFF:1.2.3.4')).toEqual(['1.2.3.4']);
    await expect(a.network.resolve('nowhere')).rejects.toMatchObject({ code: 'DNS' });
    b.stop();
    await expect(a.network.resolve('station.example')).rejects.toMatchObject({ code: 'DNS' });
  });

  it('releases after send has returned, in order, also when the socket is closed', async () => {
    const [a, b] = await pair(simulation);
    const released: number[] = [];
    const path = a.socket.path(b.host.addresses[0]!, 4433);
    for (const offset of [30, 10, 20]) a.socket.send(new Uint8Array(40), offset, 1, path, (given) => released.push(given));
    a.socket.close();
    a.socket.send(new Uint8Array(1), 0, 1, path, (given) => released.push(given));
    expect(released).toEqual([]);
    await simulation.run();
    expect(released).toEqual([30, 10, 20, 0]);
    expect(b.received).toHaveLength(3);
  });

  it('is silent after stop, and a restart has the same addresses and other keys', async () => {
    const [a, b] = await pair(simulation);
    const key = b.host.crypto.generateKey().publicKey;
    let fired = false;
    b.host.clock.schedule(1, () => {
      fired = true;
    });
    send(a, b, new Uint8Array(1));
    b.host.stop();
    send(b, a, new Uint8Array(1));
    await simulation.run();
    expect([fired, a.received, b.received]).toEqual([false, [], []]);
    const again = await peer(simulation, 'b');
    expect(again.host.addresses).toEqual(b.host.addresses);
    expect(again.host.crypto.generateKey().publicKey).not.toEqual(key);
    send(a, again, new Uint8Array(1));
    await simulation.run();
    expect(again.received).toHaveLength(1);
  });

  it('refuses a second host of the same name or address and a bad address', () => {
    simulation.host('a', { addresses: ['10.0.0.1/8'] });
    const invalid = expect.objectContaining({ code: 'INVALID_ARGUMENT' });
    expect(() => simulation.host('a')).toThrow(invalid);
    expect(() => simulation.host('b', { addresses: ['10.0.0.1/8'] })).toThrow(invalid);
    expect(() => simulation.host('c', { addresses: ['nonsense'] })).toThrow(invalid);
  });
});

describe('intervention', () => {
  it('drops, changes and multiplies datagrams', async () => {
    const [a, b] = await pair(simulation);
    simulation.onPacket = ({ from, data }) => {
      if (from !== 'a') return undefined;
      if (data[0] === 1) return 'drop';
      if (data[0] === 2) return Uint8Array.of(20);
      return data[0] === 3 ? [data, Uint8Array.of(30)] : undefined;
    };
    for (let i = 0; i < 5; i++) send(a, b, Uint8Array.of(i));
    await simulation.run();
    expect(b.received.map(({ data }) => data[0])).toEqual([0, 20, 3, 30, 4]);
  });

  it('replays and forges with inject', async () => {
    const [a, b] = await pair(simulation);
    const source = { address: a.host.addresses[0]!, port: 4433 };
    const destination = { address: b.host.addresses[0]!, port: 4433 };
    simulation.inject(source, destination, Uint8Array.of(1));
    simulation.inject({ address: '203.0.113.9', port: 9 }, destination, Uint8Array.of(2));
    simulation.inject(source, { address: '203.0.113.9', port: 9 }, Uint8Array.of(3));
    await simulation.run();
    expect(b.received.map(({ data, path }) => [data[0], path.address])).toEqual([
      [1, source.address],
      [2, '203.0.113.9'],
    ]);
  });

  it('traces the fate of each datagram', async () => {
    const simulation = new Simulation({ link: { mtu: 100 } });
    const [a, b] = await pair(simulation);
    const fates: string[] = [];
    simulation.onTrace = (packet, fate, time) => fates.push(`${packet.from}>${packet.to} ${packet.data.length} ${fate} ${time}`);
    send(a, b, new Uint8Array(1));
    send(a, b, new Uint8Array(101));
    a.socket.send(new Uint8Array(1), 0, 1, a.socket.path('203.0.113.9', 9), noRelease);
    a.socket.send(new Uint8Array(2), 0, 2, a.socket.path(b.host.addresses[0]!, 9), noRelease);
    await simulation.run();
    expect(fates).toEqual([
      'a>b 1 passed 0',
      'a>b 101 oversize 0',
      'a>undefined 1 unreachable 0',
      'a>b 2 passed 0',
      'a>b 1 delivered 5',
      'a>b 2 unreachable 5',
    ]);
  });
});

describe('virtual time', () => {
  it('jumps from event to event; within an instant deferred calls come last', async () => {
    const simulation = new Simulation({ wallTime: 1000 });
    const { clock } = simulation.host('a');
    const seen: string[] = [];
    const note = (text: string) => () => seen.push(`${text} ${clock.now()} ${clock.wallTime()}`);
    clock.schedule(3_600_000, note('hour'));
    clock.schedule(10, () => {
      clock.defer(note('deferred'));
      clock.schedule(0, note('zero'));
      note('first')();
    });
    clock.schedule(10, note('second'));
    clock.schedule(-5, note('negative'));
    clock.schedule(Number.NaN, note('none'));
    clock.schedule(Number.POSITIVE_INFINITY, note('never'));
    const cancel = clock.schedule(5, note('cancelled'));
    cancel();
    cancel();
    expect(await simulation.run()).toBe(true);
    expect(seen).toEqual([
      'negative 0 1000',
      'none 0 1000',
      'first 10 1010',
      'second 10 1010',
      'zero 10 1010',
      'deferred 10 1010',
      'hour 3600000 3601000',
    ]);
  });

  it('runs for a time, and until a condition', async () => {
    const { clock } = simulation.host('a');
    let ticks = 0;
    const tick = () => {
      ticks++;
      clock.schedule(10, tick);
    };
    tick();
    await simulation.run(95);
    expect([simulation.now, ticks]).toEqual([95, 10]);
    expect(await simulation.run(() => ticks === 20)).toBe(true);
    expect([simulation.now, ticks]).toEqual([190, 20]);
    await expect(simulation.run(() => false, 100)).rejects.toThrow('seed 1: condition did not come true within 100 ms');
  });

  it('runs promise callbacks before time advances', async () => {
    const { clock } = simulation.host('a');
    const seen: number[] = [];
    const chain = async (length: number) => {
      for (let i = 0; i < length; i++) await undefined;
      seen.push(clock.now());
    };
    clock.schedule(10, () => void chain(50));
    clock.schedule(20, () => void chain(3));
    clock.schedule(30, () => {});
    await simulation.run();
    expect(seen).toEqual([10, 20]);
  });

  it('awaits sleeping tasks in order', async () => {
    const { clock } = simulation.host('a');
    const sleep = (ms: number) => new Promise<void>((resolve) => void clock.schedule(ms, resolve));
    const task = async (step: number) => {
      let steps = 0;
      while (clock.now() < 1000) {
        await sleep(step);
        steps++;
      }
      return steps;
    };
    expect(await simulation.settle(Promise.all([task(10), task(7), task(1000)]))).toEqual([100, 143, 1]);
  });

  it('settles with the value or the error, and reports when a promise can never settle', async () => {
    const simulation = new Simulation({ seed: 'x' });
    expect(await simulation.settle(Promise.resolve(5))).toBe(5);
    await expect(simulation.settle(Promise.reject(new Error('no')))).rejects.toThrow('no');
    await expect(simulation.settle(new Promise(() => {}))).rejects.toThrow('seed x: nothing is left to happen at 0 ms');
  });

  it('throws the exception of a callback, and may run again then', async () => {
    const { clock } = simulation.host('a');
    clock.schedule(1, () => {
      throw new Error('bug');
    });
    await expect(simulation.run()).rejects.toThrow('bug');
    expect(await simulation.run()).toBe(true);
  });

  it('does not run twice at once and detects when time stands still', { tags: ['slow'] }, async () => {
    const { clock } = simulation.host('a');
    const first = simulation.run(1);
    await expect(simulation.run(1)).rejects.toMatchObject({ code: 'OPERATION_IN_PROGRESS' });
    await first;
    const spin = () => clock.defer(spin);
    spin();
    await expect(simulation.run()).rejects.toThrow('time stands still');
  });

  it('gives real IO a chance with hop', async () => {
    const simulation = new Simulation({ hop: () => new Promise((resolve) => setImmediate(resolve)) });
    const { clock } = simulation.host('a');
    let time = -1;
    clock.schedule(5, () => setImmediate(() => clock.schedule(1, () => (time = clock.now()))));
    clock.schedule(1000, () => {});
    await simulation.run();
    expect(time).toBe(6);
  });
});

describe('step by step', () => {
  it('advances from instant to instant, at most to the given time, and runs all events of one', () => {
    const { clock } = simulation.host('a');
    const ran: string[] = [];
    const note = (what: string) => ran.push(`${what} at ${clock.now()}`);
    clock.schedule(5, () => {
      note('timer');
      clock.defer(() => note('deferred'));
    });
    clock.schedule(5, () => note('timer'));
    clock.schedule(7, () => note('later'));
    simulation.step(3);
    expect([simulation.now, ran]).toEqual([3, []]);
    simulation.step(100);
    expect([simulation.now, ran.splice(0)]).toEqual([5, ['timer at 5', 'timer at 5', 'deferred at 5']]);
    simulation.step(7);
    expect([simulation.now, ran]).toEqual([7, ['later at 7']]);
    simulation.step(6);
    expect(simulation.now).toBe(7);
  });

  it('carries datagrams between sockets that were bound at once, without a promise', () => {
    const simulation = new Simulation({ link: { delay: 20 } });
    const [a, b] = [simulation.host('a'), simulation.host('b')];
    const received: [number, number[]][] = [];
    b.bind({ port: 1, receive: (data) => received.push([simulation.now, [...data]]) });
    const socket = a.bind({ port: 0, receive: () => {} });
    const released: number[] = [];
    socket.send(Uint8Array.of(1, 2, 3), 1, 2, socket.path(b.addresses[0]!, 1), (offset) => released.push(offset));
    expect(released).toEqual([]);
    simulation.step(100);
    expect([simulation.now, released]).toEqual([0, [1]]);
    simulation.step(100);
    expect(received).toEqual([[20, [2, 3]]]);
    expect(() => b.bind({ port: 1, receive: () => {} })).toThrow(expect.objectContaining({ code: 'PORT_IN_USE' }));
  });

  it('is refused for a running simulation, and detects when time stands still', { tags: ['slow'] }, async () => {
    const { clock } = simulation.host('a');
    const running = simulation.run(1);
    expect(() => simulation.step(1)).toThrow(expect.objectContaining({ code: 'OPERATION_IN_PROGRESS' }));
    await running;
    const spin = () => clock.defer(spin);
    spin();
    expect(() => simulation.step(10)).toThrow('time stands still');
  });
});

describe('determinism', () => {
  /** Two hosts that answer each datagram with up to two, over a bad link; the whole trace as text. */
  async function trace(seed: number): Promise<string> {
    const link = { delay: 10, jitter: 20, loss: 0.2, reorder: 0.2, duplicate: 0.2, rate: 1e6, queue: 5000 };
    const simulation = new Simulation({ seed, link });
    const lines: string[] = [];
    simulation.onTrace = (packet, fate, time) => lines.push(`${time} ${packet.from}>${packet.to} ${packet.data} ${fate}`);
    const hosts = [simulation.host('a'), simulation.host('b')] as const;
    for (const host of hosts) {
      const socket: BoundSocket = await host.network.bind({
        port: 1,
        receive: async (data, path) => {
          const length = 1 + (data[0]! % 50);
          await undefined;
          const more = host.crypto.randomBytes(length);
          for (let i = 0; i < 1 + (more[0]! & 1); i++)
            if (lines.length < 1000) host.clock.schedule(more[0]! % 30, () => socket.send(more, 0, more.length, path, noRelease));
        },
      });
      if (host === hosts[0])
        for (let i = 0; i < 10; i++) socket.send(Uint8Array.of(i), 0, 1, socket.path(hosts[1].addresses[0]!, 1), noRelease);
    }
    // b binds after a has sent: the datagrams are still in flight
    await simulation.run(60_000);
    return lines.join('\n');
  }

  async function repeats(of: readonly number[]): Promise<void> {
    for (const seed of of) {
      const first = await trace(seed);
      expect(first.split('\n').length).toBeGreaterThan(10);
      expect(await trace(seed)).toBe(first);
      expect(await trace(seed + 1000)).not.toBe(first);
    }
  }

  it('repeats a run exactly for the same seed and not for another', { tags: ['slow'] }, () => repeats(seeds(1, 3)));
  it('repeats runs of many seeds', { tags: ['slow'] }, () => repeats(seeds(4, 60)));

  it('gives each host its own keys', () => {
    const keys = [1, 1, 2].flatMap((seed) => {
      const simulation = new Simulation({ seed });
      return ['a', 'b'].map((name) => simulation.host(name).crypto.generateKey().publicKey.join());
    });
    expect(keys[0]).toBe(keys[2]);
    expect(keys[1]).toBe(keys[3]);
    expect(new Set(keys).size).toBe(4);
  });
});
