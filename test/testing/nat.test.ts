/** NATs of the simulator, hosts that move to another address, and damaged datagrams. */
import { describe, expect, it } from 'vitest';
import { type SimulatedHost, Simulation } from '../../testing/index.ts';
import { Nat } from '../../testing/nat.ts';

describe('nat', () => {
  const inside = { address: '10.0.0.1', port: 4433 };

  it('leaves hosts unchanged that were never rebound', () => {
    const nat = new Nat();
    expect(nat.outward(inside)).toEqual(inside);
    expect(nat.inward(inside)).toEqual(inside);
  });

  it('changes the port, the same for each use of a socket', () => {
    const nat = new Nat();
    nat.rebind('10.0.0.1', 'port');
    const outside = nat.outward(inside);
    expect(outside.address).toBe('10.0.0.1');
    expect(outside.port).not.toBe(4433);
    expect(nat.outward(inside)).toEqual(outside);
    expect(nat.outward({ ...inside, port: 1 }).port).not.toBe(outside.port);
    expect(nat.inward(outside)).toEqual(inside);
    expect(nat.inward(inside)).toBeUndefined();
  });

  it.each([
    ['10.0.0.1', /^198\.18\./],
    ['fd00::1', /^2001:db8::/],
  ])('changes the address of %s, and discards the previous mapping', (address, range) => {
    const nat = new Nat();
    nat.rebind(address, 'address');
    const first = nat.outward({ address, port: 7 });
    expect(first.address).toMatch(range);
    nat.rebind(address, 'address');
    const second = nat.outward({ address, port: 7 });
    expect(second.address).not.toBe(first.address);
    expect([nat.inward(first), nat.inward(second)]).toEqual([undefined, { address, port: 7 }]);
    expect([nat.hostAddress(first.address), nat.hostAddress(second.address)]).toEqual([address, address]);
    // back to a changed port only: the address outside stays
    nat.rebind(address, 'port');
    const third = nat.outward({ address, port: 7 });
    expect([third.address, third.port === second.port]).toEqual([second.address, false]);
  });
});

describe('rebinding of a host', () => {
  async function echoing() {
    const simulation = new Simulation({ link: { delay: 10 } });
    const [client, server] = [simulation.host('client'), simulation.host('server')];
    const seen: string[] = [];
    const back: number[] = [];
    const serverSocket = await server.network.bind({
      port: 1,
      receive: (data, path) => {
        seen.push(`${path.address}:${path.port}`);
        serverSocket.send(data, 0, data.length, path, () => {});
      },
    });
    const socket = await client.network.bind({ port: 5000, receive: (data) => back.push(data[0]!) });
    const send = (value: number) => socket.send(Uint8Array.of(value), 0, 1, socket.path(server.addresses[0]!, 1), () => {});
    return { simulation, client, server, seen, back, send };
  }

  it('shows the peer another source at the given times; answers arrive', async () => {
    const { simulation, client, seen, back, send } = await echoing();
    for (const time of [1000, 6000]) simulation.rebind(client, 'port', time);
    simulation.rebind(client, 'address', 11_000);
    for (let i = 0; i < 12; i++) {
      send(i);
      await simulation.run(1000);
    }
    expect(back).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    const sources = seen.filter((source, i) => source !== seen[i - 1]);
    expect(sources[0]).toBe('10.0.1.1:5000');
    expect(sources).toHaveLength(4);
    expect(new Set(sources.map((source) => source.split(':')[0])).size).toBe(2);
  });

  it('loses datagrams in flight to the previous source', async () => {
    const { simulation, client, seen, back, send } = await echoing();
    send(1);
    simulation.rebind(client, 'port', 15);
    await simulation.run(100);
    expect([seen.length, back]).toEqual([1, []]);
    send(2);
    await simulation.run(100);
    expect(back).toEqual([2]);
  });

  it('does not affect datagrams of a host to itself', async () => {
    const simulation = new Simulation();
    const host: SimulatedHost = simulation.host('alone');
    const got: string[] = [];
    const socket = await host.network.bind({ port: 9, receive: (_, path) => got.push(`${path.address}:${path.port}`) });
    simulation.rebind(host, 'address');
    for (const address of ['127.0.0.1', host.addresses[0]!]) socket.send(new Uint8Array(1), 0, 1, socket.path(address, 9), () => {});
    await simulation.run();
    expect(got).toEqual(['127.0.0.1:9', `${host.addresses[0]}:9`]);
  });
});

describe('corruption in a simulation', () => {
  it("delivers a changed copy and leaves the sender's bytes unchanged", async () => {
    const simulation = new Simulation({ link: { corrupt: 1 } });
    const [a, b] = [simulation.host('a'), simulation.host('b')];
    const received: Uint8Array[] = [];
    await b.network.bind({ port: 1, receive: (data) => received.push(data.slice()) });
    const socket = await a.network.bind({ port: 1, receive: () => {} });
    const traced: number[][] = [];
    simulation.onTrace = ({ data }, fate) => fate === 'passed' && traced.push([...data]);
    const sent = Uint8Array.from({ length: 100 }, (_, i) => i);
    for (let i = 0; i < 50; i++) socket.send(sent, 0, 100, socket.path(b.addresses[0]!, 1), () => {});
    await simulation.run();
    expect(received).toHaveLength(50);
    for (const data of received) expect(data.filter((byte, i) => byte !== i)).toHaveLength(1);
    expect(new Set(received.map((data) => data.findIndex((byte, i) => byte !== i))).size).toBeGreaterThan(10);
    expect(traced.every((data) => data.every((byte, i) => byte === i))).toBe(true);
  });
});
