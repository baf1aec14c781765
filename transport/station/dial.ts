/**
 * One attempt to reach a base station: resolve its name, try its addresses, take the first handshake that proves the station's key.
 *
 * Addresses are tried in the resolver's order with the pacing of RFC 8305 §5, so that a dead IPv6 costs a quarter of a second and not a timeout.
 */
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-host.ts';
import { asSvcError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Host } from '../host/host.ts';
import { type Attempt, type Failure, mostTelling, Race } from '../race.ts';
import type { Session } from '../session/session.ts';

/** Where a base station is and who it must be. */
export interface StationAddress {
  /** Name or numeric address. */
  host: string;
  port: number;
  /** Full hex fingerprint of its key. */
  fingerprint: string;
}

export interface StationDialOptions {
  /** ms for all of it: resolver and handshakes. */
  timeout: number;
  /** Our identity towards the station; default: the host's. */
  identity?: PrivateKey;
  /** Serves what the station asks. */
  router?: Router<Session>;
}

/** Redirects in a row that are followed (PROTOCOL.md §7). */
export const MAX_REDIRECTS = 5;

/** Addresses of one name that are tried. */
const MAX_ADDRESSES = 4;
/** Connection Attempt Delay (RFC 8305 §5), ms. */
const STAGGER = 250;

/**
 * Starts the attempt. It fails with DNS; FINGERPRINT_MISMATCH when another key answered; CONNECTION_REFUSED when nothing answered; STOPPED when
 * cancelled; INVALID_ARGUMENT.
 */
export function dialStation(host: Host, station: StationAddress, options: StationDialOptions): Attempt<Session> {
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
  return host.dial({
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
