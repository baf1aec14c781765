/**
 * Bench process: strangers that occupy a base station's WebSocket slots from many loopback addresses, without using
 * them.
 */
import { connect, type Socket } from 'node:net';
import { serve } from './child.ts';

interface Strangers {
  readonly port: number;
  readonly count: number;
  /** Number of source addresses. */
  readonly addresses: number;
}

/** Connections that are opened concurrently. */
const TOGETHER = 200;
const UPGRADE =
  'GET /svc/v1 HTTP/1.1\r\nhost: station\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n' +
  'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: svc.1\r\n\r\n';
const HALF = UPGRADE.slice(0, 50);

const open = new Set<Socket>();

serve({
  /** Opens idle WebSockets. @returns how many were opened */
  idle: (strangers: Strangers) => openAll(strangers, UPGRADE),

  /** Opens connections that send half a request. */
  half: (strangers: Strangers) => openAll(strangers, HALF),

  /** Returns the number of open connections. */
  count: () => open.size,

  leave() {
    for (const socket of open) socket.destroy();
    open.clear();
  },
});

async function openAll({ port, count, addresses }: Strangers, text: string): Promise<number> {
  let begun = 0;
  let opened = 0;
  const lane = async (): Promise<void> => {
    while (begun < count) {
      const n = begun++ % addresses;
      if (await opens(port, `127.1.${n >> 8}.${n & 255}`, text)) opened++;
    }
  };
  await Promise.all(Array.from({ length: Math.min(TOGETHER, count) }, lane));
  return opened;
}

/** Opens one connection. @returns whether it was accepted; half a request always is */
function opens(port: number, localAddress: string, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    socket.on('connect', () => {
      open.add(socket);
      socket.write(text);
      if (text === HALF) resolve(true);
    });
    socket.once('data', (data: Buffer) => resolve(data.includes(' 101 ')));
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      resolve(false);
    });
  });
}
