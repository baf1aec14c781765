/** A TLS server of a test on a free port of loopback, and a proxy for CONNECT. */
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ServerPair } from './certificates.ts';

export interface TestServer {
  readonly port: number;
  readonly server: Server;
  close(): Promise<void>;
}

/** Serves https with this pair. */
export async function httpsServer(pair: ServerPair, listener: RequestListener): Promise<TestServer> {
  const server = createServer(pair, listener);
  const { port, close } = await listening(server);
  return { port, server, close };
}

export interface TestProxy {
  readonly url: string;
  /** Targets of CONNECT requests, in order. */
  readonly asked: string[];
  close(): Promise<void>;
}

/** Tunnels every request to a port of loopback. @param credentials `name:password` that it requires */
export async function connectProxy(port: number, credentials?: string): Promise<TestProxy> {
  const asked: string[] = [];
  const open = new Set<Duplex>();
  const server = createHttpServer();
  const wanted = credentials === undefined ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  server.on('connect', (request, socket) => {
    if (wanted !== undefined && request.headers['proxy-authorization'] !== wanted) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm="x"\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    asked.push(String(request.url));
    const upstream = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(socket).pipe(upstream);
    });
    for (const each of [socket, upstream]) {
      open.add(each);
      each.on('error', () => {});
      each.on('close', () => open.delete(each));
    }
  });
  const { port: own, close } = await listening(server);
  return {
    url: `http://127.0.0.1:${own}`,
    asked,
    close: () => {
      for (const each of open) each.destroy();
      return close();
    },
  };
}

async function listening(server: ReturnType<typeof createHttpServer> | Server): Promise<{ port: number; close: () => Promise<void> }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): Promise<void> => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return { port: (server.address() as AddressInfo).port, close };
}
