/** A WebSocket to a base station as a socket of this host, and the handshake over it. */
import { asSvcError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { triesNext } from '../../protocol/station-dial/index.ts';
import type { Host } from '../host/host.ts';
import { type Attempt, abortable } from '../race.ts';
import { openWebSocketSocket, type WebSocketSocket } from '../websocket/index.ts';
import type { Dialled, StationDialOptions } from './attempt.ts';
import type { StationAddress } from './station-address.ts';
import type { WaysToStation } from './ways.ts';

/** Within which time, and what ends it earlier. */
export interface OpenOptions {
  /** ms */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** Dials over the WebSockets that may lead to the station, one after the other. */
export function dialWebSocket(
  host: Host,
  station: StationAddress,
  { identity, router }: StationDialOptions,
  { ways, deadline }: { ways: WaysToStation; deadline: number },
): Attempt<Dialled> {
  const { clock } = host.environment;
  return abortable(async (signal) => {
    const webSocket = await openWebSocket(host, station, ways, { timeout: Math.max(1, deadline - clock.now()), signal });
    try {
      const session = await host.connect({
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
      void host.unbind(webSocket);
      throw error;
    }
  });
}

/** A socket of the host from now on: `host.unbind` closes it. @throws the error of the URL that was tried last */
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
    receive: host.receive,
    closed: (error, ended) => host.drop(ended, error),
  });
  try {
    host.adopt(socket, true);
  } catch (error) {
    // The host has closed meanwhile.
    socket.close();
    throw error;
  }
  return socket;
}
