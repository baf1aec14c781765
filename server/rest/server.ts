/**
 * The HTTP side of a base station: fastify with bounded requests, in clear or over TLS.
 *
 * `restApp` builds the application (tests call its `inject`), `listen` puts it on a port. What it does not do: proxies are not trusted
 * (`X-Forwarded-For` is ignored), and nothing is listened to here that the caller did not name.
 */
import fastify, { type FastifyInstance } from 'fastify';
import { LocalError } from '../../protocol/errors/index.ts';
import type { Log } from '../../transport/environment.ts';
import type { Store } from '../storage/store.ts';
import { limitConnections } from './connection-limits.ts';
import { clientError, errorHandler, notFound } from './errors.ts';
import { addRoutes } from './routes.ts';
import { addWellKnown, type StationIdentity } from './well-known.ts';

export interface RestOptions {
  store: Store;
  /** The storage takes no writes. Default: it does. */
  storageFailed?: () => boolean;
  /** Whom `/.well-known/svc` names; without it there is no such document. */
  station?: () => StationIdentity;
  /** Unix time, ms; default that of the process. */
  wallTime?: () => number;
  log: Log;
  /** PEM text of certificate chain and private key; without it HTTP in clear. */
  tls?: { cert: string; key: string };
  /** Milliseconds a client may take for the TLS handshake, and for a whole request. Default 10,000. */
  requestTimeout?: number;
}

const REQUEST_TIMEOUT = 10_000;
/** Bytes of a body, and of all headers. */
const BODY_LIMIT = 65_536;
const HEADER_LIMIT = 16_384;

/** @throws LocalError INVALID_ARGUMENT when certificate and key are not usable */
export function restApp(options: RestOptions): FastifyInstance {
  const { store, storageFailed = () => false, station, wallTime = Date.now, log, tls, requestTimeout = REQUEST_TIMEOUT } = options;
  const handleError = errorHandler(log);
  const settings = {
    bodyLimit: BODY_LIMIT,
    requestTimeout,
    connectionTimeout: requestTimeout,
    exposeHeadRoutes: false,
    forceCloseConnections: true as const,
    clientErrorHandler: clientError,
    frameworkErrors: handleError as never,
  };
  const limits = { maxHeaderSize: HEADER_LIMIT };
  const app = tls
    ? withTls(() => fastify({ ...settings, https: { ...limits, ...tls, handshakeTimeout: requestTimeout } }))
    : fastify({ ...settings, http: limits });
  const closeConnections = limitConnections(app.server);
  app.addHook('preClose', async () => closeConnections());
  app.setErrorHandler(handleError);
  app.setNotFoundHandler(notFound);
  addRoutes(app, store, storageFailed);
  if (station !== undefined) addWellKnown(app, station, wallTime);
  return app;
}

function withTls(make: () => unknown): FastifyInstance {
  try {
    return make() as FastifyInstance;
  } catch (error) {
    throw new LocalError('INVALID_ARGUMENT', `the TLS certificate or key cannot be used: ${(error as Error).message}`);
  }
}

/**
 * Listens on TCP.
 * @returns the port
 * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (host is not an address of this machine)
 */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<number> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, host, port);
  }
  return (app.server.address() as { port: number }).port;
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new LocalError('PORT_IN_USE', `TCP port ${port} is in use: stop what uses it or choose another with --port`);
    case 'EACCES':
      return new LocalError('PRIVILEGED_PORT', `this user may not listen on TCP port ${port}: choose one above 1023 with --port`);
    case 'EADDRNOTAVAIL':
    case 'EAFNOSUPPORT':
    case 'ENOTFOUND':
      return new LocalError('INVALID_ARGUMENT', `${host} is not an address of this machine`);
    default:
      return error;
  }
}
