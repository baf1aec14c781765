/**
 * Bench process: both ends of a relay between WebSockets, and many idle ends. The packets of a route contain no
 * connection.
 */
import { WebSocket } from 'ws';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { Host } from '../../runtime/host/index.ts';
import { WEBSOCKET_PATH, WebSocketSocket } from '../../runtime/websocket/index.ts';
import { serve } from './child.ts';

interface Address {
  readonly port: number;
  /** Fingerprint of our relay; absent for a bare one. */
  readonly fingerprint?: string;
}

interface End {
  readonly webSocket: WebSocket;
  /** Receives messages that belong to no session. */
  listener: (message: Buffer) => void;
}

const SIZE = 1_200;
/** Packets under way: fewer than a WebSocket of a base station holds. */
const WINDOW = 32;
const ROUTE_HEADER = 9;
/** Concurrent handshakes. */
const TOGETHER = 8;

const environment = nodeEnvironment();
let host: Host | null = null;
let ends: readonly End[] = [];

serve({
  /** Opens two ends; the first sends. */
  async open(address: Address) {
    ends = [await end(address), await end(address)];
  },

  /** Returns the milliseconds for `count` packets of 1,200 bytes. @param id of the route; undefined for a bare relay */
  run({ count, id }: { count: number; id?: readonly number[] }) {
    const packet = Buffer.alloc(SIZE, 0xc0);
    packet[0] = 0x88;
    packet.set(id ?? [], 1);
    const [sender, receiver] = ends as [End, End];
    return new Promise<number>((resolve) => {
      const began = performance.now();
      let sent = 0;
      let got = 0;
      const send = (): void => {
        sent++;
        sender.webSocket.send(packet, { binary: true });
      };
      receiver.listener = (message) => {
        if (message.length !== SIZE || message[ROUTE_HEADER] !== 0xc0) return;
        if (++got === count) resolve(performance.now() - began);
        else if (sent < count) send();
      };
      while (sent < Math.min(WINDOW, count)) send();
    });
  },

  /** Opens `count` more sessions, each over its own WebSocket. They stay open. */
  async idle({ address, count }: { address: Address; count: number }) {
    for (let made = 0; made < count; made += TOGETHER)
      await Promise.all(Array.from({ length: Math.min(TOGETHER, count - made) }, () => end(address)));
  },
});

/** Opens a WebSocket, with a session over it if the relay is ours. */
async function end({ port, fingerprint }: Address): Promise<End> {
  const webSocket = new WebSocket(`ws://127.0.0.1:${port}${WEBSOCKET_PATH}`, ['svc.1'], { perMessageDeflate: false });
  await new Promise((resolve, reject) => webSocket.once('open', resolve).once('error', reject));
  const opened: End = { webSocket, listener: () => {} };
  if (fingerprint === undefined) webSocket.on('message', (message: Buffer) => opened.listener(message));
  else await withSession(opened, fingerprint);
  return opened;
}

async function withSession(opened: End, pin: string): Promise<void> {
  const { webSocket } = opened;
  host ??= await Host.open(environment, {
    identity: environment.crypto.generateKey(),
    binds: [],
    limits: { connections: 10_000 },
    core: { connections: 10_000, memory: 176 << 20 },
  });
  const { receive } = host.datagrams;
  const pipe = {
    ...{ index: environment.network.nextIndex!(), address: '127.0.0.1', port: 1, proxy: null },
    send: (message: Uint8Array, sent: () => void) => webSocket.send(message, { binary: true }, sent),
    close: () => webSocket.close(),
  };
  const socket = new WebSocketSocket(pipe, { clock: environment.clock, receive, closed: () => {} });
  webSocket.on('message', (message: Buffer) => {
    if (message[0] === 0x88) opened.listener(message);
    else socket.deliver(message);
  });
  host.sockets.adopt(socket, true);
  const session = await host.dials.connect({ path: socket.path, name: 'station', pin });
  // Once an answer arrives, the relay has the session.
  await session.request({ method: 'GET', path: '/' }).catch(() => {});
}
