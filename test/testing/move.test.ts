/** Interfaces that come and go: a running host with other addresses, with none, and behind another box. */
import { describe, expect, it } from 'vitest';
import { type MessagePipe, type SimulatedHost, Simulation } from '../../testing/index.ts';
import { type Party, party } from './nat-support.ts';

const noop = () => {};
const CABLE = '192.0.2.10/24';
const WIFI = '198.51.100.20/24';
const [cable, wifi] = [CABLE.split('/')[0]!, WIFI.split('/')[0]!];

interface Scene {
  readonly simulation: Simulation;
  readonly laptop: SimulatedHost;
  readonly here: Party;
  readonly there: Party;
  readonly station: string;
}

function scene(): Scene {
  const simulation = new Simulation();
  const laptop = simulation.host('laptop', { addresses: [CABLE] });
  const station = simulation.host('station', { addresses: ['203.0.113.1/24'] });
  return { simulation, laptop, here: party(laptop, 5000), there: party(station, 9), station: '203.0.113.1' };
}

function web(simulation: Simulation, got: string[], accepted: (pipe: MessagePipe) => void = noop): SimulatedHost {
  const host = simulation.host('web', { addresses: ['203.0.113.2/24'] });
  host.listenWebSocket({
    port: 80,
    protocol: 'p',
    accept: (pipe) => {
      accepted(pipe);
      return { receive: (message) => got.push(`${message[0]}`), closed: () => got.push('closed') };
    },
  });
  return host;
}

async function openPipe(simulation: Simulation, host: SimulatedHost, got: string[]): Promise<MessagePipe> {
  return simulation.settle(
    host.network.openWebSocket!({
      url: 'ws://web/',
      protocol: 'p',
      timeout: 1000,
      receive: (message) => got.push(`here ${message[0]}`),
      closed: () => got.push('closed here'),
    }),
  );
}

describe('a host that moves', () => {
  it('sends from its new address, loses datagrams to the old one, and reports its interfaces', async () => {
    const { simulation, laptop, here, there, station } = scene();
    here.send(1, station, 9);
    await simulation.run();
    simulation.move(laptop, { addresses: [WIFI], kinds: ['other'] });
    there.answer(2);
    here.send(3, station, 9);
    await simulation.run();
    there.answer(4);
    await simulation.run();
    expect(there.got).toEqual([`1 from ${cable}:5000`, `3 from ${wifi}:5000`]);
    expect(here.got).toEqual([`4 from ${station}:9`]);
    expect(laptop.addresses).toEqual([wifi]);
    expect(laptop.network.interfaces!()).toEqual([{ name: 'sim0', addresses: [WIFI], kind: 'other' }]);
    expect(laptop.mdns.links()).toEqual([{ name: WIFI, addresses: [wifi] }]);
    expect(await there.host.network.resolve('laptop')).toEqual([wifi]);
  });

  it('loses datagrams in flight to the old address', async () => {
    const { simulation, laptop, here, there } = scene();
    there.send(1, cable, 5000);
    simulation.move(laptop, { addresses: [WIFI] });
    await simulation.run();
    expect(here.got).toEqual([]);
  });

  it('has no route while its link is down, and continues at its address', async () => {
    const { simulation, laptop, here, there, station } = scene();
    simulation.move(laptop, { addresses: [] });
    here.send(1, station, 9);
    here.send(2, '127.0.0.1', 5000);
    await simulation.run();
    expect([there.got, here.got, laptop.network.interfaces!()]).toEqual([[], ['2 from 127.0.0.1:5000'], []]);
    simulation.move(laptop, { addresses: [CABLE] });
    here.send(3, station, 9);
    await simulation.run();
    expect(there.got).toEqual([`3 from ${cable}:5000`]);
  });

  it('sends from the address that a socket is bound to as long as it has it', async () => {
    const { simulation, laptop, there, station } = scene();
    simulation.move(laptop, { addresses: [WIFI, CABLE] });
    const bound = laptop.bind({ port: 6000, host: cable, receive: noop });
    const send = (value: number): void => bound.send(Uint8Array.of(value), 0, 1, bound.path(station, 9), noop);
    send(1);
    await simulation.run();
    simulation.move(laptop, { addresses: [WIFI] });
    send(2);
    await simulation.run();
    expect(there.got).toEqual([`1 from ${cable}:6000`]);
    expect(() => laptop.bind({ port: 6001, host: cable, receive: noop })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('reports which addresses are near by its new networks', () => {
    const { simulation, laptop } = scene();
    const path = laptop.bind({ port: 1, local: true, receive: noop }).path('198.51.100.7', 1);
    expect([laptop.isNear('198.51.100.7'), path.local]).toEqual([false, false]);
    simulation.move(laptop, { addresses: [WIFI] });
    expect([laptop.isNear('198.51.100.7'), path.local]).toEqual([true, true]);
  });

  it('moves behind a box and out of it', async () => {
    const { simulation, laptop, here, there, station } = scene();
    const phone = simulation.nat('phone', { outside: ['198.51.100.99'], inside: ['10.0.0.1'] });
    simulation.move(laptop, { addresses: ['10.0.0.2/24'], behind: phone });
    here.send(1, station, 9);
    await simulation.run();
    expect(laptop.network.gateways!()).toEqual(['10.0.0.1']);
    simulation.move(laptop, { addresses: ['10.0.0.3/24'] });
    here.send(2, station, 9);
    await simulation.run();
    simulation.move(laptop, { addresses: [CABLE], behind: null });
    here.send(3, station, 9);
    await simulation.run();
    expect(there.got.map((text) => text.slice(0, text.lastIndexOf(':')))).toEqual([
      '1 from 198.51.100.99',
      '2 from 198.51.100.99',
      `3 from ${cable}`,
    ]);
  });

  it('may use an address that another host has left, and restarts at its last addresses', async () => {
    const { simulation, laptop } = scene();
    const box = simulation.nat('box', { outside: ['198.51.100.99'] });
    simulation.move(laptop, { addresses: ['10.0.0.2/24'], behind: box });
    simulation.host('guest', { addresses: [CABLE] });
    laptop.stop();
    const again = simulation.host('laptop');
    expect(again.networks).toEqual(['10.0.0.2/24']);
    expect(() => simulation.host('third', { addresses: ['10.0.0.2/24'], behind: box })).toThrow(/already belongs to laptop/);
  });

  it('changes nothing where an address has an owner or is invalid, and never a stopped host', async () => {
    const { simulation, laptop, here, there, station } = scene();
    const invalid = expect.objectContaining({ code: 'INVALID_ARGUMENT' });
    expect(() => simulation.move(laptop, { addresses: [WIFI, `${station}/24`] })).toThrow(invalid);
    expect(() => simulation.move(laptop, { addresses: ['nonsense'] })).toThrow(invalid);
    here.send(1, station, 9);
    await simulation.run();
    expect(there.got).toEqual([`1 from ${cable}:5000`]);
    laptop.stop();
    expect(() => simulation.move(laptop, { addresses: [WIFI] })).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
  });
});

describe('WebSockets of a host that moves', () => {
  it('are silent both ways without notification, and continue when it comes back in time', async () => {
    const { simulation, laptop } = scene();
    const got: string[] = [];
    let far: MessagePipe | undefined;
    web(simulation, got, (pipe) => {
      far = pipe;
    });
    const pipe = await openPipe(simulation, laptop, got);
    simulation.move(laptop, { addresses: [WIFI] });
    pipe.send(Uint8Array.of(1), noop);
    far!.send(Uint8Array.of(2), noop);
    await simulation.run(10_000);
    expect(got).toEqual([]);
    simulation.move(laptop, { addresses: [WIFI, CABLE] });
    await simulation.run(10_000);
    expect(got.sort()).toEqual(['1', 'here 2']);
  });

  it('do not follow it behind a box with the same address', async () => {
    const { simulation, laptop } = scene();
    const box = simulation.nat('box', { outside: ['198.51.100.99'] });
    const got: string[] = [];
    web(simulation, got);
    const pipe = await openPipe(simulation, laptop, got);
    simulation.move(laptop, { addresses: [CABLE], behind: box });
    pipe.send(Uint8Array.of(1), noop);
    await simulation.run(10_000);
    expect(got).toEqual([]);
    const other = await openPipe(simulation, laptop, got);
    other.send(Uint8Array.of(2), noop);
    await simulation.run(10_000);
    expect(got).toEqual(['2']);
  });

  it('are reset when another host has the address by then', async () => {
    const { simulation, laptop } = scene();
    const got: string[] = [];
    const host = web(simulation, got);
    const pipe = await openPipe(simulation, laptop, got);
    simulation.move(host, { addresses: ['203.0.113.3/24'] });
    simulation.host('other', { addresses: ['203.0.113.2/24'] });
    pipe.send(Uint8Array.of(1), noop);
    await simulation.run(10_000);
    expect(got).toEqual(['closed here']);
  });
});
