/** Bench process: both ends of what is relayed between WebSockets, and many ends that are idle. Packets of a route are made without a connection inside. */
import { WebSocket } from 'ws';
import { Host } from '../../transport/host/index.ts';
import { nodeEnvironment } from '../../transport/node/index.ts';
import { WEBSOCKET_PATH, WebSocketSocket } from '../../transport/websocket/index.ts';
import { serve } from './child.ts';

interface Address {
  readonly port: number;
  /** Of our relay. */
  readonly fingerprint?: string;
}

interface End {
  readonly webSocket: WebSocket;
  /** Hears what is no session's. */
  listener: (message: Buffer) => void;
}

const SIZE = 1_200;
/** Packets under way: less than what a WebSocket of a base station holds. */
const WINDOW = 32;
const ROUTE_HEADER = 9;
/** Handshakes at a time. */
const TOGETHER = 8;

const environment = nodeEnvironment();
let host: Host | null = null;
let ends: readonly End[] = [];

serve({
  /** Two ends; the first sends. */
  async open(address: Address) {
    ends = [await end(address), await end(address)];
  },

  /** Milliseconds for so many packets of 1,200 bytes. @param id of the route; without it a bare relay is asked */
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

  /** So many more sessions over a WebSocket each, which stay. */
  async idle({ address, count }: { address: Address; count: number }) {
    for (let made = 0; made < count; made += TOGETHER)
      await Promise.all(Array.from({ length: Math.min(TOGETHER, count - made) }, () => end(address)));
  },
});

/** A WebSocket, with a session over it where the relay is ours. */
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
  const { receive } = host;
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
  host.adopt(socket, true);
  const session = await host.connect({ path: socket.path, name: 'station', pin });
  // The relay has the session once the answer to a packet of it is here.
  await session.request({ method: 'GET', path: '/' }).catch(() => {});
}
