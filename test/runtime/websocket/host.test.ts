/** Hosts over WebSockets of the simulator: handshake, traffic, and sessions whose WebSocket ends. */
import { describe, expect, it } from 'vitest';
import type { MessagePipe, WebSocketOptions } from '../../../platform/environment.ts';
import type { Path } from '../../../protocol/path.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { openWebSocketSocket, SharedQueue, SUBPROTOCOL, WEBSOCKET_PATH, WebSocketSocket } from '../../../runtime/websocket/index.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { hosts, type Pair, type PairOptions, testRouter } from '../session/support.ts';

const PORT = 4433;
const INITIATE = 0x80;

interface Scene extends Pair {
  /** Lengths of the Initiates that the station received over WebSockets. */
  initiates: number[];
  /** The accepting host's ends. */
  pipes: MessagePipe[];
  accepting: WebSocketSocket[];
  queue: SharedQueue;
  /** Packets of the opening end wait in the pipe. */
  stall(on: boolean): void;
  open(): Promise<{ socket: WebSocketSocket; session: Session }>;
}

/** The device of the pair accepts WebSockets as a base station does. */
async function scene(options: PairOptions = {}): Promise<Scene> {
  const both = await hosts(options);
  const rest = { initiates: [] as number[], pipes: [] as MessagePipe[], accepting: [] as WebSocketSocket[], queue: new SharedQueue() };
  both.device.onSession = (session) => {
    both.accepted.push(session);
    session.router = testRouter(both.deviceEnvironment);
  };
  both.deviceEnvironment.listenWebSocket({
    port: PORT,
    protocol: SUBPROTOCOL,
    path: WEBSOCKET_PATH,
    accept: (pipe) => {
      const socket: WebSocketSocket = new WebSocketSocket(pipe, {
        clock: both.deviceEnvironment.clock,
        receive: both.device.datagrams.receive,
        closed: (error) => both.device.sockets.drop(socket, error),
        queue: rest.queue,
      });
      both.device.sockets.adopt(socket);
      rest.pipes.push(pipe);
      rest.accepting.push(socket);
      const receive = (message: Uint8Array): void => {
        if (message[0] === INITIATE) rest.initiates.push(message.length);
        socket.deliver(message);
      };
      return { receive, closed: (error) => socket.ended(error) };
    },
  });
  const stalling = stallable(both.clientEnvironment);
  const open = async () => {
    const socket = await openWebSocketSocket(stalling, {
      url: `ws://10.0.0.1:${PORT}${WEBSOCKET_PATH}`,
      timeout: 5_000,
      receive: both.client.datagrams.receive,
      closed: (error, ended) => both.client.sockets.drop(ended, error),
    });
    both.client.sockets.adopt(socket, true);
    const { device } = both;
    const session = await both.client.dials.connect({ path: socket.path, name: 'device', pin: device.fingerprint });
    return { socket, session };
  };
  return {
    ...both,
    ...rest,
    stall: stalling.stall,
    open: async () => {
      const opened = await both.simulation.settle(open());
      await both.simulation.run(() => both.accepted.some(({ paths }) => paths.active.socket === rest.pipes.at(-1)!.index));
      return opened;
    },
  };
}

/** An environment whose WebSockets accept no further packets while they are stalled. */
function stallable({ clock, network }: SimulatedHost) {
  let isStalled = false;
  const waiting: (() => void)[] = [];
  const openWebSocket = async (options: WebSocketOptions): Promise<MessagePipe> => {
    const pipe = await network.openWebSocket!(options);
    const send: MessagePipe['send'] = (message, sent) => {
      if (isStalled) waiting.push(() => pipe.send(message, sent));
      else pipe.send(message, sent);
    };
    const { index, address, port, proxy } = pipe;
    return { index, address, port, proxy, send, close: (code) => pipe.close(code) };
  };
  const stall = (on: boolean): void => {
    isStalled = on;
    if (!on) for (const send of waiting.splice(0)) send();
  };
  return { clock, network: { ...network, openWebSocket }, stall };
}

const GET = { method: 'GET', path: '/hello', timeout: 20_000 } as const;

async function status({ simulation }: Scene, session: Session): Promise<number> {
  return (await simulation.settle(session.request(GET))).status;
}

describe('a host over a WebSocket', () => {
  it('connects without padding, and its requests are answered there', async () => {
    const both = await scene();
    const { socket, session } = await both.open();
    expect(await status(both, session)).toBe(205);
    expect([both.initiates.length, both.initiates[0]! < 200]).toEqual([1, true]);
    expect([session.paths.active, both.client.sockets.bound.length, both.device.sockets.bound.length]).toEqual([socket.path, 1, 1]);
    expect(both.accepted[0]!.paths.active).toMatchObject({ kind: 'websocket', local: false });
    expect([session.paths.isLocal, both.accepted[0]!.paths.isLocal]).toEqual([false, false]);
  });

  it('lends it no more packets than its capacity while many sessions send over it, and loses none', { tags: ['slow'] }, async () => {
    const both = await scene({ link: { delay: 100, rate: 600e3 }, device: { acceptStreams: true } });
    let got = 0;
    const { onSession } = both.device;
    both.device.onSession = (session) => {
      onSession?.(session);
      session.onStream = async (incoming) => {
        const stream = incoming.accept();
        for (;;) {
          const { length } = await stream.read();
          got += length;
        }
      };
    };
    const { socket, session } = await both.open();
    const target = { path: socket.path, name: 'device', pin: both.device.fingerprint };
    const connecting = Array.from({ length: 5 }, () => both.client.dials.connect(target));
    const sessions = [session, ...(await both.simulation.settle(Promise.all(connecting)))];
    const streams = await both.simulation.settle(Promise.all(sessions.map((each) => openedStream(each, 1))));
    const writing = Promise.all(streams.map((stream) => stream.write(new Uint8Array(256 << 10))));
    await both.simulation.run(() => got > 160 << 10);
    both.stall(true);
    await both.simulation.run(2_000);
    const held = socket.queued;
    both.stall(false);
    await both.simulation.settle(writing);
    await both.simulation.run(() => got === sessions.length * (256 << 10));
    expect([held > 60_000, held <= 65_536, both.client.stats().dropped]).toEqual([true, true, 0]);
  });

  it('ends a session with the reason when the pipe ends, at both ends, and removes the socket', async () => {
    const both = await scene();
    const { session, socket } = await both.open();
    const accepted = both.accepted[0]!;
    const other = await both.open();
    both.pipes[0]!.close(1008);
    both.device.sockets.drop(both.accepting[0]!, { code: 'CLOSED', message: 'slow' } as never);
    await expect(accepted.closed).resolves.toMatchObject({ message: 'slow' });
    await both.simulation.run(100);
    await expect(session.closed).resolves.toMatchObject({ code: 'CLOSED' });
    expect([
      both.device.datagrams.send(new Uint8Array(8), both.accepting[0]!.path),
      both.client.datagrams.send(new Uint8Array(8), socket.path),
    ]).toEqual([false, false]);
    expect(await status(both, other.session)).toBe(205);
  });

  it('migrates a session that has another path there, as from a path that fails', async () => {
    const both = await scene();
    const { session } = await both.open();
    const udp = both.client.sockets.bound[0]!.path('10.0.0.1', both.device.sockets.bound[0]!.port);
    session.paths.add(udp);
    await both.simulation.run(1_000);
    both.pipes[0]!.close();
    await both.simulation.run(1_000);
    expect([session.paths.active, await status(both, session)]).toEqual([udp, 205]);
  });

  it('fails a connect in progress with the reason of the pipe', async () => {
    const both = await scene();
    const { socket } = await both.open();
    const dial = both.client.dials.start({ path: socket.path, name: 'nobody', pin: both.device.fingerprint });
    both.pipes[0]!.close();
    await expect(both.simulation.settle(dial.result)).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('notifies the other end before it closes a WebSocket on its own', async () => {
    const both = await scene();
    const { session, socket } = await both.open();
    const accepted = both.accepted[0]!;
    await both.simulation.settle(both.client.sockets.unbind(socket));
    await expect(session.closed).resolves.toMatchObject({ code: 'STOPPED', message: 'the WebSocket was closed' });
    await both.simulation.run(100);
    await expect(accepted.closed).resolves.toMatchObject({ code: 'CLOSED' });
    await both.simulation.settle(both.client.sockets.unbind(socket));
  });

  it('closes them with the host', async () => {
    const both = await scene();
    const { session } = await both.open();
    await both.simulation.settle(both.device.close());
    await both.simulation.run(100);
    await expect(session.closed).resolves.toMatchObject({ code: 'CLOSED' });
    expect(() => both.device.sockets.adopt(both.accepting[0]!)).toThrow(expect.objectContaining({ code: 'STOPPED' }));
  });

  it('knows a route by the WebSocket that it came over, whatever is known of its peer', async () => {
    const both = await scene();
    const { session, socket } = await both.open();
    const id = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
    const path = both.client.routes.path(session, id);
    const dial = both.client.dials.start({ path, name: 'nobody', timeout: 500 });
    dial.result.catch(() => {});
    // A packet of no known kind: the client's statistics show whether it knew the route.
    const routed = Uint8Array.of(0x88, ...id, 0x99, ...new Uint8Array(24));
    const unknown = () => both.client.stats().unknownId!;
    const before = unknown();
    const elsewhere: Path = { ...socket.path, kind: 'websocket', socket: 99, key: 'w', address: '', port: 0, local: false };
    both.client.datagrams.receive(routed.slice(), elsewhere);
    expect(unknown()).toBe(before + 1);
    both.client.datagrams.receive(routed.slice(), { ...elsewhere, socket: socket.index });
    expect([unknown(), both.client.stats().malformed]).toEqual([before + 1, 1]);
  });
});
