/**
 * One attempt to reach a base station, by UDP and, where that is silent, over a WebSocket: the first handshake that
 * proves the station's key wins.
 *
 * 1. UDP: resolve its name, try its addresses in the resolver's order with the pacing of RFC 8305 §5, so that a broken
 *    IPv6 costs a quarter of a second and not a timeout.
 * 2. WebSocket (`web-socket-dial.ts`): a second later, or as soon as the name does not resolve (a proxy may resolve
 *    it). At once where this network blocked UDP before.
 * 3. A UDP answer that is not the station's ends the attempt: only silence leads to the WebSocket.
 *
 * The resulting session migrates between both as long as it is open: `protocol/station-dial/channel-paths.ts` decides
 * when, `channel-migration.ts` carries it out. A WebSocket is a socket of the host with one path
 * (`runtime/websocket/`), so a channel migrates to it as between any two paths. `ways.ts` knows the URLs and the
 * networks in which UDP was silent.
 */
import { asSvcError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Host } from '../host/host.ts';
import { type Attempt, type Failure, inOrder, mostTelling, Race } from '../race.ts';
import type { Session } from '../session/session.ts';
import { ChannelMigration } from './channel-migration.ts';
import type { StationAddress } from './station-address.ts';
import { type DialResult, dialWebSocket, type StationDialOptions } from './web-socket-dial.ts';

/** Most redirects in a row (PROTOCOL.md §7.5). */
export const MAX_REDIRECTS = 5;

/** Most addresses tried for one name. */
const MAX_ADDRESSES = 4;
/** Connection Attempt Delay (RFC 8305 §5), ms. */
const STAGGER = 250;
/** ms of silence by UDP after which a WebSocket is opened. */
const WEBSOCKET_DELAY = 1_000;
/**
 * ms by which the WebSocket's timeout is shorter than UDP's: then its error, as of a stalled proxy, is known when the
 * time is over.
 */
const WEBSOCKET_MARGIN = 100;

/**
 * Starts the attempt. It fails with DNS; FINGERPRINT_MISMATCH when another key answered; CONNECTION_REFUSED when
 * nothing answered, including the WebSocket's error; STOPPED when cancelled; INVALID_ARGUMENT.
 */
export function dialStation(host: Host, station: StationAddress, options: StationDialOptions): Attempt<Session> {
  const { ways } = options;
  if (ways === undefined || host.environment.network.openWebSocket === undefined) return dialUdp(host, station, options);
  const blocked = ways.blockedHere();
  const { clock } = host.environment;
  const deadline = clock.now() + options.timeout;
  const race = new Race<DialResult>({
    environment: host.environment,
    delay: blocked.isKnown ? 0 : WEBSOCKET_DELAY,
    discard: (late) => void discard(host, late),
    summarize: (failures) => bothErrors(inOrder(failures), station),
  });
  let webSocketError: SvcError | undefined;
  race.add(() => {
    const { result, cancel } = dialUdp(host, station, options);
    result.catch((error: SvcError) => {
      // When the time is over the WebSocket has as little left as UDP.
      if (!isSilence(error)) race.stop(error);
      else if (clock.now() >= deadline) race.stop(bothErrors([error, ...(webSocketError ? [webSocketError] : [])], station));
    });
    return { result: result.then((session) => ({ session, webSocket: null })), cancel };
  });
  race.add(() =>
    dialWebSocket(host, station, options, {
      ways,
      deadline: deadline - WEBSOCKET_MARGIN,
      failed: (error) => {
        webSocketError = error;
      },
    }),
  );
  race.end();
  const result = race.result.then((dialled) => {
    blocked.note(dialled.webSocket !== null);
    new ChannelMigration({ ...dialled, host, station, ways });
    return dialled.session;
  });
  return { result, cancel: race.cancel };
}

async function discard(host: Host, { session, webSocket }: DialResult): Promise<void> {
  await session.close();
  if (webSocket !== null) await host.sockets.unbind(webSocket);
}

function dialUdp(host: Host, station: StationAddress, options: StationDialOptions): Attempt<Session> {
  const { environment } = host;
  const race = new Race<Session>({
    environment,
    delay: STAGGER,
    discard: (session) => void session.close(),
    summarize: (failures) => dialError(failures, station),
  });
  const deadline = environment.clock.now() + options.timeout;
  const silent = new RemoteError('DNS', `the resolver does not answer for ${station.host}`);
  let resolved = false;
  const cancelTimeout = environment.clock.schedule(options.timeout, () => race.stop(resolved ? undefined : silent));
  race.result.then(cancelTimeout, cancelTimeout);
  environment.network.resolve(station.host).then(
    (addresses) => {
      resolved = true;
      for (const address of addresses.slice(0, MAX_ADDRESSES)) race.add(() => dialAddress(host, station, options, address, deadline));
      race.end();
    },
    (error: unknown) => race.stop(asSvcError(error)),
  );
  return race;
}

function dialAddress(
  host: Host,
  { port, fingerprint }: StationAddress,
  { identity, router }: StationDialOptions,
  address: string,
  deadline: number,
): Attempt<Session> {
  return host.dials.start({
    name: 'station',
    pin: fingerprint,
    timeout: Math.max(1, deadline - host.environment.clock.now()),
    address,
    port,
    ...(identity && { identity }),
    ...(router && { router }),
  });
}

function dialError(failures: readonly Failure[], { host, port }: StationAddress): SvcError {
  const error = mostTelling(failures.map((failure) => failure.error));
  if (error !== null && error.code !== 'TIMEOUT') return error;
  return new RemoteError('CONNECTION_REFUSED', `no base station answers at ${host} port ${port}`);
}

/** Nothing came back by UDP, or its address was unknown. */
function isSilence({ code }: SvcError): boolean {
  return code === 'CONNECTION_REFUSED' || code === 'DNS' || code === 'STOPPED';
}

/** Both ways failed. A wrong key is the most informative; else UDP's error, followed by the WebSocket's. */
function bothErrors([udp, webSocket]: readonly SvcError[], { host, port }: StationAddress): SvcError {
  if (udp === undefined) return new RemoteError('CONNECTION_REFUSED', `no base station answers at ${host} port ${port}`);
  if (webSocket === undefined || webSocket.code === 'STOPPED') return udp;
  if (webSocket.code === 'FINGERPRINT_MISMATCH') return webSocket;
  return new RemoteError(udp.code, `${udp.message}; nor over a WebSocket: ${webSocket.message}`, { cause: webSocket });
}
