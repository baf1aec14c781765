/** The one path of a WebSocket. */
import type { Path } from '../../protocol/path.ts';

export class WebSocketPath implements Path {
  readonly kind = 'websocket';
  readonly key: string;
  readonly address: string;
  readonly port: number;
  readonly socket: number;
  /** Never local, whatever the addresses: a proxy may stand in between. */
  readonly local = false;

  readonly proxy: string | null;

  /** @param address numeric, empty where it is unknown @param proxy `host:port` */
  constructor(socket: number, address: string, port: number, proxy: string | null) {
    this.key = `websocket:${socket}:${address.includes(':') ? `[${address}]` : address}:${port}`;
    this.address = address;
    this.port = port;
    this.socket = socket;
    this.proxy = proxy;
  }
}
