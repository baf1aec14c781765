/**
 * The HTTP side of a base station: fastify with bounded requests, in cleartext or over TLS.
 *
 * `restApp` builds the application (tests call its `inject`), `listen.ts` puts it on a port. Proxies count as clients
 * unless the operator names them (`client-address.ts`). A connection outside of the REST address may only become a
 * WebSocket.
 */
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import type { Log } from '../../platform/environment.ts';
import { WEBSOCKET_PATH } from '../../runtime/websocket/index.ts';
import { ClientAddresses } from '../client-address.ts';
import type { Store } from '../storage/store.ts';
import { acceptUpgrades, isForWebSocket, type UpgradeOptions } from '../websocket/upgrades.ts';
import { limitConnections } from './connection-limits.ts';
import { clientError, errorHandler, notFound, onlyWebSockets, upgradeRequired } from './errors.ts';
import { addRoutes } from './routes.ts';
import { addWellKnown, type StationIdentity } from './well-known.ts';

export interface RestOptions {
  store: Store;
  /** Returns whether writes to the storage fail. Default: they do not. */
  storageFailed?: () => boolean;
  /** The station that `/.well-known/svc` names; without it there is no such document. */
  station?: () => StationIdentity;
  /** Unix time, ms; default that of the process. */
  wallTime?: () => number;
  log: Log;
  /**
   * PEM text of certificate chain and private key, as `Certificates` has checked them; without it HTTP is in cleartext.
   */
  tls?: { cert: string; key: string };
  /** ms that a client may take for the TLS handshake, and for a whole request. Default 10,000. */
  requestTimeout?: number;
  /** ms that a peer has to read the answer to what is not HTTP, and to close. Default 1,000. */
  closingTime?: number;
  /** Finds client addresses. Default: no proxy is trusted. */
  addresses?: ClientAddresses;
  /** Returns which connections may make requests; the others may only become WebSockets. Default: all. */
  serves?: (socket: Pick<Socket, 'localAddress' | 'remoteAddress'>) => boolean;
  /** Accepts WebSockets; without it there are none. */
  webSockets?: Pick<UpgradeOptions, 'webSockets' | 'nextIndex' | 'now'>;
}

export const REQUEST_TIMEOUT = 10_000;
const CLOSING_TIME = 1_000;
/** Most bytes of a body, and of all headers. */
const BODY_LIMIT = 65_536;
export const HEADER_LIMIT = 16_384;

/** Builds the application. */
export function restApp(options: RestOptions): FastifyInstance {
  const { store, storageFailed = () => false, station, wallTime = Date.now, log, tls, requestTimeout = REQUEST_TIMEOUT } = options;
  const { closingTime = CLOSING_TIME } = options;
  const { addresses = new ClientAddresses({ trusted: [], header: 'x-forwarded-for', log }), serves = () => true, webSockets } = options;
  const handleError = errorHandler(log);
  const settings = {
    bodyLimit: BODY_LIMIT,
    requestTimeout,
    connectionTimeout: requestTimeout,
    exposeHeadRoutes: false,
    forceCloseConnections: true as const,
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) => clientError(error, socket, closingTime),
    frameworkErrors: handleError as never,
  };
  const limits = { maxHeaderSize: HEADER_LIMIT, ...(webSockets && { shouldUpgradeCallback: isForWebSocket }) };
  const app = tls
    ? (fastify({ ...settings, https: { ...limits, ...tls, handshakeTimeout: requestTimeout } }) as unknown as FastifyInstance)
    : fastify({ ...settings, http: limits });
  const connections = limitConnections(app.server, {
    kindOf: (socket) => (serves(socket) ? 'requests' : 'upgrade'),
    isTrusted: (address) => addresses.isTrusted(address),
  });
  app.addHook('preClose', async () => connections.close());
  app.addHook('onRequest', async ({ raw, url }, reply) => {
    if (url.split('?', 1)[0] === WEBSOCKET_PATH) return upgradeRequired(reply);
    return serves(raw.socket) ? undefined : onlyWebSockets(reply);
  });
  app.setErrorHandler(handleError);
  app.setNotFoundHandler(notFound);
  addRoutes(app, { store, storageFailed, addresses });
  if (station !== undefined) addWellKnown(app, station, wallTime);
  if (webSockets !== undefined)
    acceptUpgrades(app.server, { ...webSockets, addresses, upgraded: (socket) => connections.upgraded(socket) });
  return app;
}
