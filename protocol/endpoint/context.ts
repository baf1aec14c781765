/** The state that the parts of an endpoint share: created once by `Endpoint`. */
import type { Core, CoreConnection, DataParameters } from '../../bindings/index.ts';
import type { StreamLimits } from '../connection/index.ts';
import { MAX_PARTS } from '../datagrams/index.ts';
import { LocalError } from '../errors/index.ts';
import type { TrafficKeys } from '../noise/index.ts';
import { u32 } from '../packet/index.ts';
import { type Path, packetCeiling } from '../path.ts';
import type { Outbox } from './batch.ts';
import type { EndpointConfig } from './config.ts';
import type { HalfOpen } from './half-open.ts';
import type { Ids } from './ids.ts';
import type { Registry, Slot } from './registry.ts';
import type { Resets } from './reset.ts';
import type { Routes } from './routes.ts';
import type { EndpointStats } from './stats.ts';

export interface Context {
  readonly config: EndpointConfig;
  readonly ids: Ids<Slot | HalfOpen>;
  readonly registry: Registry;
  readonly routes: Routes;
  readonly resets: Resets;
  readonly outbox: Outbox;
  readonly streams: StreamLimits;
  readonly stats: EndpointStats;
}

/**
 * Our constant: share of a core's byte streams reserved for those being refused: each needs a record until its reset
 * has arrived.
 */
export const RESET_SHARE = 1 / 16;

/** Returns the number of byte streams that peers may hold open. */
export function mostStreams(core: Core): number {
  return Math.ceil(core.maxPeerStreams * (1 - RESET_SHARE));
}

/**
 * Returns our parameters for one connection: no more than the core can hold, and no credit for byte streams to a peer
 * that may not open them.
 */
export function ownParameters(config: EndpointConfig, acceptStreams: boolean): DataParameters {
  const { core, parameters } = config;
  return {
    ...parameters,
    initialMaxData: Math.min(parameters.initialMaxData, core.maxFirstData),
    maxStreams: acceptStreams ? Math.min(parameters.maxStreams, mostStreams(core)) : 0,
    maxMessages: Math.min(parameters.maxMessages, core.maxPeerMessages),
  };
}

/** Returns how many parts of a datagram an end puts together: one that takes datagrams takes parts. */
export function flowPartsOf({ maxDatagram }: DataParameters): number {
  return maxDatagram > 0 ? MAX_PARTS : 0;
}

/** ms without a packet after which the first of the two ends forgets a connection; 0: never. */
export function idleTimeoutOf({ idleTimeout: ours }: DataParameters, { idleTimeout: theirs }: DataParameters): number {
  return ours === 0 || theirs === 0 ? Math.max(ours, theirs) : Math.min(ours, theirs);
}

export interface CoreRequest {
  readonly initiator: boolean;
  /** Creates the keys; may be called again. */
  readonly keys: () => TrafficKeys;
  readonly localId: Uint8Array;
  readonly remoteId: Uint8Array;
  readonly local: DataParameters;
  readonly remote: DataParameters;
  readonly path: Path;
  /** Initiator: the Complete packet. */
  readonly complete?: Uint8Array;
  /** Round-trip time of one of our handshake packets that was sent once, ms; 0 = unknown. */
  readonly rtt: number;
}

/**
 * Opens a connection in the core with the keys of a handshake, and wipes the keys. If the core is full, it ends the
 * oldest closing connection first.
 * @throws LocalError OUT_OF_MEMORY
 */
export function openCore(context: Context, request: CoreRequest, now: number): CoreConnection {
  try {
    return tryOpen(context, request, now);
  } catch (error) {
    const isFull = error instanceof LocalError && error.code === 'OUT_OF_MEMORY';
    if (!isFull || !context.registry.endClosing()) throw error;
    return tryOpen(context, request, now);
  }
}

function tryOpen({ config }: Context, request: CoreRequest, now: number): CoreConnection {
  const keys = request.keys();
  try {
    const core = config.core.open({
      initiator: request.initiator,
      sendKey: keys.send,
      receiveKey: keys.receive,
      sendMaskKey: keys.sendMask,
      receiveMaskKey: keys.receiveMask,
      localId: request.localId,
      remoteId: request.remoteId,
      local: request.local,
      remote: request.remote,
      ...(request.complete === undefined ? {} : { complete: request.complete }),
      ...(config.keepAlive === undefined ? {} : { keepAlive: config.keepAlive }),
      packetCeiling: packetCeiling(request.path),
      ...(config.congestion === undefined ? {} : { congestion: config.congestion }),
      rtt: request.rtt,
      skipSeed: u32(config.crypto.randomBytes(4), 0),
      challengeSeed: config.crypto.randomBytes(32),
      now,
    });
    if (request.path.route !== undefined) core.paths.setRoute(request.path.route);
    return core;
  } finally {
    for (const key of [keys.send, keys.receive, keys.sendMask, keys.receiveMask]) key.fill(0);
  }
}
