/** Opens a WebSocket to a base station as a socket of this host, with the handshake over it. */
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import { asSvcError, type ErrorCode, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { NoUpgradeError, triesNext } from '../../protocol/station-dial/index.ts';
import type { Host } from '../host/host.ts';
import { pause } from '../pause.ts';
import { type Attempt, abortable } from '../race.ts';
import type { Session } from '../session/session.ts';
import { openWebSocketSocket, type WebSocketSocket } from '../websocket/index.ts';
import { uniform } from './backoff.ts';
import type { StationAddress } from './station-address.ts';
import type { WaysToStation } from './ways.ts';

/** The result of an attempt. */
export interface DialResult {
  readonly session: Session;
  /** The WebSocket that the session uses; null: it uses UDP. */
  readonly webSocket: WebSocketSocket | null;
}

export interface StationDialOptions {
  /** ms for everything: resolver and handshakes. */
  timeout: number;
  /** Our identity towards the station; default: the host's. */
  identity?: PrivateKey;
  /** Serves requests of the station. */
  router?: Router<Session>;
  /** Default: only UDP. */
  ways?: WaysToStation;
}

/** Time limit and cancellation. */
export interface OpenOptions {
  /** ms */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/**
 * ms to the next attempt in the same dial, while UDP is silent: the base station may restart, or a proxy in front of it
 * may reach it again.
 */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 3_000;
/** Share of a pause by which it may be longer, at random. */
const SPREAD = 0.25;
/** Errors that do not change during a dial. */
const LASTING: ReadonlySet<string> = new Set<ErrorCode>([
  'FINGERPRINT_MISMATCH',
  'CERTIFICATE_VALIDATION_FAILED',
  'DNS',
  'INVALID_ARGUMENT',
  'INVALID_STATE',
  'STOPPED',
]);

interface WebSocketDial {
  readonly ways: WaysToStation;
  readonly deadline: number;
  /** Called with each error before the next attempt. */
  readonly failed: (error: SvcError) => void;
}

/**
 * Dials over the WebSockets that may lead to the station, one after the other, and again after a pause until the
 * deadline. Fails with the most informative error.
 */
export function dialWebSocket(
  host: Host,
  station: StationAddress,
  options: StationDialOptions,
  { ways, deadline, failed }: WebSocketDial,
): Attempt<DialResult> {
  const { clock, crypto } = host.environment;
  return abortable(async (signal) => {
    let problem: SvcError | null = null;
    for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
      try {
        return await dialOnce(host, station, options, { ways, deadline, signal });
      } catch (thrown) {
        const error = asSvcError(thrown);
        if (problem === null || error.code !== 'TIMEOUT') problem = error;
        failed(problem);
        const time = wait * (1 + SPREAD * uniform(crypto));
        if (isLasting(error) || signal.aborted || clock.now() + time >= deadline) throw problem;
        await pause(clock, time, signal);
      }
    }
  });
}

/** Returns whether an error lasts for the whole dial: of HTTP answers, all but server errors (5xx). */
function isLasting(error: SvcError): boolean {
  return LASTING.has(error.code) || (error instanceof NoUpgradeError && error.status < 500);
}

async function dialOnce(
  host: Host,
  station: StationAddress,
  { identity, router }: StationDialOptions,
  { ways, deadline, signal }: { ways: WaysToStation; deadline: number; signal: AbortSignal },
): Promise<DialResult> {
  const { clock } = host.environment;
  const webSocket = await openWebSocket(host, station, ways, { timeout: Math.max(1, deadline - clock.now()), signal });
  try {
    const session = await host.dials.connect({
      name: 'station',
      pin: station.fingerprint,
      timeout: Math.max(1, deadline - clock.now()),
      path: webSocket.path,
      signal,
      ...(identity && { identity }),
      ...(router && { router }),
    });
    return { session, webSocket };
  } catch (error) {
    void host.sockets.unbind(webSocket);
    throw error;
  }
}

/**
 * Opens a WebSocket as a socket of the host: `host.unbind` closes it.
 * @throws the error of the URL that was tried last
 */
export async function openWebSocket(
  host: Host,
  station: StationAddress,
  ways: WaysToStation,
  { timeout, signal }: OpenOptions,
): Promise<WebSocketSocket> {
  const { clock } = host.environment;
  const deadline = clock.now() + timeout;
  let problem: SvcError = new RemoteError('CONNECTION_REFUSED', `there is no WebSocket to ${station.host}`);
  for (const url of ways.urls(station)) {
    try {
      return await openUrl(host, url, ways, { timeout: Math.max(1, deadline - clock.now()), signal });
    } catch (error) {
      problem = asSvcError(error);
      if (!triesNext(problem)) throw problem;
    }
  }
  throw problem;
}

async function openUrl(host: Host, url: string, { settings }: WaysToStation, options: OpenOptions): Promise<WebSocketSocket> {
  const { verifyCertificate = false, rootCerts } = settings;
  const socket = await openWebSocketSocket(host.environment, {
    ...options,
    url,
    verifyCertificate,
    ...(rootCerts !== undefined && { rootCerts }),
    receive: host.datagrams.receive,
    closed: (error, ended) => host.sockets.drop(ended, error),
  });
  try {
    host.sockets.adopt(socket, true);
  } catch (error) {
    // The host has closed meanwhile.
    socket.close();
    throw error;
  }
  return socket;
}
