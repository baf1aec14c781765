/** WebSockets of the simulator: opening, ordered delivery, and faults that a test can cause. */
import { describe, expect, it } from 'vitest';
import type { MessagePipe } from '../../platform/environment.ts';
import { type SimulatedHost, Simulation, type SimulationOptions, type WebSocketListenOptions } from '../../testing/index.ts';

const PROTOCOL = 'svc.1';
const noSent = () => {};

/** One end of a pipe, and its received messages. */
class End {
  pipe!: MessagePipe;
  readonly bytes: Uint8Array[] = [];
  readonly got: string[] = [];
  readonly ended: string[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  readonly receive = (message: Uint8Array): void => {
    this.bytes.push(message);
    this.got.push(`${message[0] ?? 'empty'} at ${Math.round(this.#now())}`);
  };
  readonly closed = (error: Error & { code?: string }): void =>
    void this.ended.push(`${error.code} ${error.message} at ${Math.round(this.#now())}`);

  send(value: number, length = 1): void {
    this.pipe.send(new Uint8Array(length).fill(value), noSent);
  }
}

interface Scene {
  readonly simulation: Simulation;
  readonly station: SimulatedHost;
  readonly client: SimulatedHost;
  /** The acceptor's ends, in the order of opening. */
  readonly accepted: End[];
  open(options?: Partial<Parameters<NonNullable<SimulatedHost['network']['openWebSocket']>>[0]>): Promise<End>;
}

function scene(options: SimulationOptions = {}, listen: Partial<WebSocketListenOptions> = {}): Scene {
  const simulation = new Simulation({ link: { delay: 20 }, ...options });
  const station = simulation.host('station');
  const client = simulation.host('client');
  const accepted: End[] = [];
  station.listenWebSocket({ port: 80, protocol: PROTOCOL, accept: (pipe) => accept(simulation, accepted, pipe), ...listen });
  const open: Scene['open'] = (changes = {}) => simulation.settle(openAt(simulation, client, changes));
  return { simulation, station, client, accepted, open };
}

function accept(simulation: Simulation, accepted: End[], pipe: MessagePipe): End {
  const end = new End(() => simulation.now);
  end.pipe = pipe;
  accepted.push(end);
  return end;
}

async function openAt(simulation: Simulation, host: SimulatedHost, changes: Parameters<Scene['open']>[0]): Promise<End> {
  const end = new End(() => simulation.now);
  const options = { url: 'ws://station/svc/v1', protocol: PROTOCOL, timeout: 5000, receive: end.receive, closed: end.closed };
  end.pipe = await host.network.openWebSocket!({ ...options, ...changes });
  return end;
}

describe('opening', () => {
  it('takes two round trips, with TLS three', async () => {
    const clear = scene();
    await clear.open();
    expect(clear.simulation.now).toBeCloseTo(80);
    const secure = scene({}, { port: 443, secure: true });
    await secure.open({ url: 'wss://station/svc/v1' });
    expect(secure.simulation.now).toBeCloseTo(120);
  });

  it('reports to each end the address of the other, and counts sockets', async () => {
    const { station, client, accepted, open } = scene();
    client.bind({ port: 0, receive: noSent });
    const { pipe } = await open({ url: `ws://[${station.addresses[1]}]:80/` });
    expect(pipe).toMatchObject({ index: 1, address: station.addresses[1], port: 80, proxy: null });
    expect(accepted[0]!.pipe).toMatchObject({ index: 0, address: client.addresses[1], port: 49_152 });
  });

  it('delivers messages that the acceptor sends at once, after it is open', async () => {
    const early = (pipe: MessagePipe) => {
      pipe.send(Uint8Array.of(7), noSent);
      return { receive: noSent, closed: noSent };
    };
    const { simulation, client } = scene({}, { accept: early });
    const order: string[] = [];
    const opened = async () => {
      await openAt(simulation, client, { receive: (message) => order.push(`received ${message[0]}`) });
      order.push('open');
    };
    await simulation.settle(opened());
    expect([order, simulation.now]).toEqual([['open', 'received 7'], 80]);
  });

  it('is refused after a round trip without a listener, and never answered without a host', async () => {
    const { simulation, station, open } = scene();
    await expect(open({ url: 'ws://station:81/' })).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    expect(simulation.now).toBeCloseTo(40);
    await expect(open({ url: 'ws://203.0.113.9/', timeout: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(simulation.now).toBeCloseTo(1040);
    await expect(open({ url: 'ws://nowhere/' })).rejects.toMatchObject({ code: 'DNS' });
    station.stop();
    const address = `ws://${station.addresses[0]}/`;
    await expect(open({ url: address, timeout: 1000 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    const again = simulation.host('station');
    await expect(open({ url: address })).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    again.stop({ tcpReset: true });
    await expect(open({ url: address })).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    expect(simulation.pipes()).toEqual([]);
  });

  it.each([
    ['TLS to a listener without', { url: 'wss://station:80/' }, {}, 'BAD_RESPONSE'],
    ['none to a listener with TLS', {}, { secure: true }, 'BAD_RESPONSE'],
    ['another subprotocol', { protocol: 'svc.2' }, {}, 'BAD_RESPONSE'],
    ['another path', { url: 'ws://station/svc/v2' }, { path: '/svc/v1' }, 'BAD_RESPONSE'],
    ['a status', {}, { accept: () => 503 }, 'BAD_RESPONSE'],
    [
      'a certificate, where it is verified',
      { url: 'wss://station:80/', verifyCertificate: true },
      { secure: true, validCertificate: false },
      'CERTIFICATE_VALIDATION_FAILED',
    ],
    ['no URL', { url: 'http://station/' }, {}, 'INVALID_ARGUMENT'],
    ['no port', { url: 'ws://station:70000/' }, {}, 'INVALID_ARGUMENT'],
  ])('fails by %s', async (_, changes, listen, code) => {
    const { simulation, open } = scene({}, listen);
    await expect(open(changes)).rejects.toMatchObject({ code });
    await simulation.run();
    expect(simulation.pipes()).toEqual([]);
  });

  it('accepts an invalid certificate where it is not verified', async () => {
    const { open, accepted } = scene({}, { secure: true, validCertificate: false, port: 443 });
    await open({ url: 'wss://station/' });
    expect(accepted).toHaveLength(1);
  });

  it('stops by its signal, also between the acceptance and its end', async () => {
    const { simulation, client, accepted, open } = scene();
    await expect(open({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'STOPPED' });
    const abort = new AbortController();
    client.clock.schedule(70, () => abort.abort());
    await expect(open({ signal: abort.signal })).rejects.toMatchObject({ code: 'STOPPED' });
    expect(accepted).toHaveLength(1);
    await simulation.run();
    expect(accepted[0]!.ended).toEqual([expect.stringContaining('CLOSED')]);
  });

  it('refuses a port twice until it is closed', () => {
    const { station } = scene();
    const again = { port: 80, protocol: PROTOCOL, accept: () => 503 };
    expect(() => station.listenWebSocket(again)).toThrow(expect.objectContaining({ code: 'PORT_IN_USE' }));
    const other = station.listenWebSocket({ ...again, port: 81 });
    other.close();
    other.close();
    station.listenWebSocket({ ...again, port: 81 });
    expect(() => station.listenWebSocket({ ...again, port: 0 })).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('passes every NAT box with the address of the outermost, also where UDP is blocked', async () => {
    const { simulation, accepted } = scene();
    const provider = simulation.nat('provider', { outside: ['198.51.100.7'], blocked: true });
    const home = simulation.nat('home', { outside: ['100.64.0.9'], behind: provider });
    const inside = simulation.host('inside', { addresses: ['192.168.1.2/24'], behind: home });
    const end = await simulation.settle(openAt(simulation, inside, {}));
    accepted[0]!.send(1);
    await simulation.run();
    expect(accepted[0]!.pipe.address).toBe('198.51.100.7');
    expect(end.got).toHaveLength(1);
  });

  it('gives IPv6 hosts behind a NAT64 its address, and those behind a prefix their own', async () => {
    const simulation = new Simulation();
    const accepted: End[] = [];
    const station = simulation.host('station', { addresses: ['203.0.113.1/24', '2001:db8:1::1/64'] });
    station.listenWebSocket({ port: 80, protocol: PROTOCOL, accept: (pipe) => accept(simulation, accepted, pipe) });
    const box = simulation.nat('box', { outside: ['198.51.100.7', '2001:db8:7::/48'], nat64: '64:ff9b::', v6: 'firewall' });
    const inside = simulation.host('inside', { addresses: ['2001:db8:7::2/64'], behind: box });
    await simulation.settle(openAt(simulation, inside, { url: 'ws://[64:ff9b::cb00:7101]/' }));
    await simulation.settle(openAt(simulation, inside, { url: 'ws://[2001:db8:1::1]/' }));
    expect(accepted.map(({ pipe }) => pipe.address)).toEqual(['198.51.100.7', '2001:db8:7::2']);
  });
});

describe('an open pipe', () => {
  it('carries whole messages in order, with unchanged bytes', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    const messages = [Uint8Array.of(), new Uint8Array(65_535).map((_, i) => i), Uint8Array.of(3)];
    for (const message of messages) accepted[0]!.pipe.send(message, noSent);
    await simulation.run();
    expect(end.got).toEqual(['empty at 100', '0 at 100', '3 at 100']);
    expect(end.bytes).toEqual(messages);
  });

  it("calls sent in order as the link's line becomes free, and never before send returns", async () => {
    const { simulation, accepted, open } = scene({ link: { delay: 20, rate: 80_000 } });
    const end = await open();
    const start = simulation.now;
    const sent: string[] = [];
    for (const name of ['a', 'b', 'c'])
      end.pipe.send(new Uint8Array(1000), () => sent.push(`${name} ${Math.round(simulation.now - start)}`));
    expect(sent).toEqual([]);
    await simulation.run();
    expect(sent).toEqual(['a 100', 'b 200', 'c 300']);
    expect(accepted[0]!.got).toHaveLength(3);
  });

  it('calls sent at once for messages that fit into the send buffer of the host', async () => {
    const simulation = new Simulation({ link: { delay: 20, rate: 80_000 } });
    const accepted: End[] = [];
    const station = simulation.host('station');
    station.listenWebSocket({ port: 80, protocol: PROTOCOL, accept: (pipe) => accept(simulation, accepted, pipe) });
    const end = await simulation.settle(openAt(simulation, simulation.host('client', { sendBuffer: 2000 }), {}));
    const start = simulation.now;
    const sent: string[] = [];
    for (const name of ['a', 'b', 'c', 'd'])
      end.pipe.send(new Uint8Array(1000), () => sent.push(`${name} ${Math.round(simulation.now - start)}`));
    expect(sent).toEqual([]);
    await simulation.run();
    expect(sent).toEqual(['a 0', 'b 0', 'c 100', 'd 200']);
    expect(accepted[0]!.got).toHaveLength(4);
  });

  it('shares the line with datagrams', async () => {
    const { simulation, station, client, accepted, open } = scene({ link: { delay: 20, rate: 80_000 } });
    const end = await open();
    const start = simulation.now;
    const socket = client.bind({ port: 0, receive: noSent });
    socket.send(new Uint8Array(1000), 0, 1000, socket.path(station.addresses[0]!, 9), noSent);
    end.send(1, 1000);
    await simulation.run();
    expect(accepted[0]!.got).toEqual([`1 at ${Math.round(start + 220)}`]);
  });

  it('loses nothing: a message that a link loses or damages is late, and delays those behind it', async () => {
    const { simulation, accepted, open } = scene({ link: { delay: 20 } });
    const end = await open();
    simulation.link('client', 'station', { delay: 20, loss: 1 }, { delay: 20 });
    end.send(1);
    simulation.link('client', 'station', { delay: 20, reorder: 0.5, reorderDelay: 30, duplicate: 0.5 }, { delay: 20 });
    for (let i = 2; i < 10; i++) end.send(i);
    await simulation.run();
    expect(accepted[0]!.got.map((text) => Number(text.split(' ')[0]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(accepted[0]!.got[0]).toBe('1 at 340');
    simulation.link('client', 'station', { delay: 20, loss: 0.3, corrupt: 0.2, burst: 3 });
    for (let i = 0; i < 200; i++) end.send(i, 3000);
    await simulation.run();
    expect(accepted[0]!.got.slice(9).map((text) => Number(text.split(' ')[0]))).toEqual(Array.from({ length: 200 }, (_, i) => i));
  });

  it('retransmits messages that arrive damaged', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    simulation.link('client', 'station', { delay: 20, corrupt: 1, longestBurst: 1 }, { delay: 20 });
    end.send(1);
    await simulation.run();
    expect(accepted[0]!.got).toEqual(['1 at 340']);
  });

  it('doubles its timeout while a link is down, and gives up after a quarter of an hour', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    simulation.link('client', 'station', { delay: 20, loss: 1 });
    end.send(1);
    await simulation.run(60_000);
    simulation.link('client', 'station', { delay: 20 });
    await simulation.run(120_000);
    expect(accepted[0]!.got).toEqual(['1 at 61300']);
    simulation.link('client', 'station', { delay: 20, loss: 1 });
    end.send(2);
    await simulation.run();
    expect(end.ended).toEqual([expect.stringContaining('TIMEOUT')]);
    expect(accepted[0]!.ended).toEqual([]);
  });

  it('delivers messages sent before a close, and reports the code to the other end', async () => {
    const { simulation, accepted, open } = scene({ link: { delay: 20, rate: 80_000 } });
    const end = await open();
    const sent: number[] = [];
    for (const value of [1, 2]) end.pipe.send(Uint8Array.of(value), () => sent.push(value));
    end.pipe.close(1001);
    end.pipe.close();
    end.pipe.send(Uint8Array.of(3), () => sent.push(3));
    expect(sent).toEqual([]);
    await simulation.run();
    expect(sent).toEqual([1, 2, 3]);
    expect(accepted[0]!.got.map((text) => text[0])).toEqual(['1', '2']);
    expect(accepted[0]!.ended).toEqual([expect.stringMatching(/^CLOSED .*1001/)]);
    expect(end.ended).toEqual([]);
    expect(simulation.pipes()).toEqual([]);
  });

  it('is reset when it sends to an end that has closed meanwhile, and reports it once', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    end.pipe.close();
    accepted[0]!.send(1);
    await simulation.run();
    expect([end.got, end.ended, accepted[0]!.ended.length]).toEqual([[], [], 1]);
  });
});

describe('faults of pipes', () => {
  it('stalls: nothing passes, no sent is called, nothing is lost', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    let sent = 0;
    end.send(1);
    const [pipe] = simulation.pipes('client');
    pipe!.stall();
    end.pipe.send(Uint8Array.of(2), () => sent++);
    accepted[0]!.send(3);
    await simulation.run(60_000);
    expect([sent, accepted[0]!.got, end.got]).toEqual([0, [], []]);
    pipe!.resume();
    await simulation.run();
    expect([sent, accepted[0]!.got.map((text) => text[0]), end.got.length]).toEqual([1, ['1', '2'], 1]);
  });

  it('stalls one that begins to open', async () => {
    const { simulation, open } = scene();
    simulation.onPipe = (pipe) => pipe.stall();
    await expect(open({ timeout: 300 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    await simulation.run();
    expect(simulation.pipes()).toEqual([]);
  });

  it('is half-open: messages are lost, up to what kernels hold, and neither end is notified until the kernel gives up', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    simulation.pipes()[0]!.halfOpen();
    let sent = 0;
    for (let i = 0; i < 300; i++) end.pipe.send(new Uint8Array(1400), () => sent++);
    await simulation.run(600_000);
    expect([sent, accepted[0]!.got, end.ended, accepted[0]!.ended]).toEqual([188, [], [], []]);
    await simulation.run();
    expect([sent, end.ended, accepted[0]!.ended]).toEqual([300, [expect.stringContaining('TIMEOUT')], []]);
  });

  it('is cut: both ends are notified at once, also one that is opening', async () => {
    const { simulation, client, accepted, open } = scene();
    const end = await open();
    simulation.pipes()[0]!.cut();
    expect([end.ended, accepted[0]!.ended]).toEqual([[expect.stringContaining('CLOSED')], [expect.stringContaining('CLOSED')]]);
    client.clock.schedule(10, () => simulation.pipes()[0]!.cut());
    await expect(open()).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    expect(simulation.pipes()).toEqual([]);
  });

  it('passes through a proxy that forwards in batches', async () => {
    const { simulation, client, accepted, open } = scene();
    const end = await open();
    simulation.pipes()[0]!.batch(1000);
    end.send(1);
    client.clock.schedule(500, () => end.send(2));
    client.clock.schedule(1500, () => end.send(3));
    await simulation.run();
    expect(accepted[0]!.got).toEqual(['1 at 1000', '2 at 1000', '3 at 2000']);
    end.send(4);
    await simulation.run(50);
    simulation.pipes()[0]!.batch(0);
    expect(accepted[0]!.got.at(-1)).toBe('4 at 2050');
  });

  it('is half-open when the other host loses power, until the host is back and does not know it', async () => {
    const { simulation, station, accepted, open } = scene();
    const end = await open();
    station.stop();
    end.send(1);
    await simulation.run(100);
    expect([end.ended, accepted[0]!.ended]).toEqual([[], []]);
    simulation.host('station');
    await simulation.run();
    expect(end.ended).toEqual([expect.stringMatching(/^CLOSED .*reset/)]);
  });

  it('is reset when the other process is killed', async () => {
    const { simulation, station, accepted, open } = scene();
    const end = await open();
    station.stop({ tcpReset: true });
    await simulation.run();
    expect(end.ended).toEqual(['CLOSED the connection was reset (1006) at 100']);
    expect(accepted[0]!.ended).toEqual([]);
    expect(simulation.pipes()).toEqual([]);
  });
});

describe('a firewall', () => {
  it('drops all UDP of a host either way and passes TCP', async () => {
    const { simulation, station, client, accepted, open } = scene();
    const got: string[] = [];
    const there = station.bind({ port: 9, receive: () => got.push('station') });
    const here = client.bind({ port: 9, receive: () => got.push('client') });
    const send = (): void => {
      here.send(new Uint8Array(1), 0, 1, here.path(station.addresses[0]!, 9), noSent);
      there.send(new Uint8Array(1), 0, 1, there.path(client.addresses[0]!, 9), noSent);
    };
    const unblock = simulation.block(client, 'udp');
    send();
    (await open()).send(1);
    await simulation.run();
    expect([got, accepted[0]!.got.length]).toEqual([[], 1]);
    unblock();
    send();
    await simulation.run();
    expect(got.sort()).toEqual(['client', 'station']);
  });

  it('drops TCP: pipes are silent, none opens, and datagrams pass', async () => {
    const { simulation, accepted, open } = scene();
    const end = await open();
    const unblock = simulation.block('station', 'tcp');
    end.send(1);
    await expect(open({ timeout: 100 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    unblock();
    await simulation.run();
    expect([accepted[0]!.got.map((text) => text[0]), end.ended]).toEqual([['1'], []]);
  });
});
