/**
 * Bench process: a relay between WebSockets. `ours` is the relaying part of a base station: upgrades, host, routes.
 * `bare` passes each message of one WebSocket to the other with the library alone.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { silentLog } from '../../platform/environment.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { Host } from '../../runtime/host/index.ts';
import { LogTally } from '../../runtime/log-tally.ts';
import type { Session } from '../../runtime/session/index.ts';
import { ClientAddresses } from '../../server/client-address.ts';
import { Relay } from '../../server/station/relay.ts';
import { defaultSettings } from '../../server/station/settings.ts';
import { WebSockets } from '../../server/station/web-sockets.ts';
import { acceptUpgrades } from '../../server/websocket/upgrades.ts';
import { serve } from './child.ts';

const CONNECTIONS = 10_000;
/** Collections before a sample: a later one returns the pages that an earlier one has emptied. */
const COLLECTIONS = 5;
const UNLIMITED = 1e12;

const { clock, crypto, ...environment } = nodeEnvironment();
const waiting: Session[] = [];
let relay: Relay;

serve({
  /** Starts our relay. `route` opens a route between the last two sessions. */
  async ours() {
    const host = await Host.open(
      { clock, crypto, ...environment },
      {
        identity: crypto.generateKey(),
        binds: [],
        responder: () => ['station'],
        limits: { connections: CONNECTIONS, halfOpen: 1_000, retryAbove: 500 },
        core: { connections: CONNECTIONS, memory: 176 << 20 },
      },
    );
    host.onSession = (session) => waiting.push(session);
    const send: Host['datagrams']['send'] = (datagram, path) => host.datagrams.send(datagram, path);
    const limits = { bytesPerSecond: UNLIMITED, packetsPerSecond: UNLIMITED };
    relay = new Relay({ clock, crypto, resetSecret: crypto.randomBytes(32), limits, routeIdleTimeout: 300_000, send });
    host.datagrams.intercept(relay.intercept);
    const settings = { ...defaultSettings, webSocketsPerAddress: CONNECTIONS };
    const webSockets = new WebSockets({ clock, tally: new LogTally(clock, silentLog), host, settings, isProved: () => true });
    const server = createServer();
    acceptUpgrades(server, {
      webSockets,
      addresses: new ClientAddresses({ trusted: [], header: 'x-forwarded-for', log: silentLog }),
      nextIndex: () => environment.network.nextIndex!(),
      now: () => clock.now(),
      upgraded: () => {},
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { port: (server.address() as AddressInfo).port, fingerprint: host.fingerprint };
  },

  /** Opens a route between the last two sessions. @returns the id of the first one's end */
  route() {
    const [sender, receiver] = waiting.splice(-2);
    const end = sender && receiver && relay.open(sender, receiver);
    if (!end) throw new Error('no route');
    return [...end.id];
  },

  async bare() {
    const server = createServer();
    const library = new WebSocketServer({ server, perMessageDeflate: false, maxPayload: 65_535 });
    let first: WebSocket | undefined;
    library.on('connection', (webSocket) => {
      const other = first;
      first = webSocket;
      other?.on('message', (data) => webSocket.send(data as Buffer, { binary: true }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return { port: (server.address() as AddressInfo).port };
  },

  /** Returns the resident bytes after several collections. */
  async resident() {
    for (let turn = 0; turn < COLLECTIONS; turn++) {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return process.memoryUsage.rss();
  },
});
