/** The configuration of a host: types only. */
import type { CongestionControl, CoreOptions, DataParameters, KeepAlive } from '../../bindings/index.ts';
import type { BindOptions } from '../../platform/environment.ts';
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import type { EndpointLimits } from '../../protocol/endpoint/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { Session } from '../session/session.ts';

/** A socket of the host. */
export type Bind = Omit<BindOptions, 'receive' | 'unreachable'>;

/** Follows changes of a host's network (`roaming/`). */
export interface NetworkWatcher {
  /** A session has opened. */
  opened(session: Session): void;
  /** As BindOptions.unreachable, for the sockets that the host has bound. */
  unreachable(address: string): void;
}

/** Limits, read at every decision, so they may change while the host runs (`Host.limits`). */
export type HostLimits = EndpointLimits;

/** Everything needed to open a host. */
export interface HostConfig {
  identity: PrivateKey;
  binds: readonly Bind[];
  /** Returns the names answered on a path; without it the host accepts nothing. */
  responder?: (path: Path) => readonly string[];
  /** Sent in message 2 (a device: { ProductId, DeviceId }). */
  info?: Record<string, unknown>;
  /** Overrides of `defaultParameters`. */
  parameters?: Partial<DataParameters>;
  /**
   * Keep-alive of connections that this host opens; an accepted one relies on the idle timeout. Default 25 s, 2
   * s, 15 times.
   */
  keepAlive?: KeepAlive;
  limits?: Partial<HostLimits>;
  /**
   * How far `limits.connections` may be raised while the host runs; `core.connections` must have as many slots.
   * Default: not at all.
   */
  capacity?: number;
  /** 32 bytes kept beside the identity key, so that peers detect our restart by Reset; default: random. */
  resetSecret?: Uint8Array;
  core?: CoreOptions;
  /** Peers may open byte streams to us (a device). */
  acceptStreams?: boolean;
  /**
   * Initial receive window of an accepted stream, bytes; it grows as the application reads, up to 3.75 MiB. Default 64
   * KiB.
   */
  streamWindow?: number;
  /**
   * Largest packet sent and accepted, bytes of UDP payload, 1,200 to 65,000; default the network's. Bulk transfers
   * probe what the path carries of it; above 1,452 they probe only on loopback and on links with a stated MTU. Each of
   * the core's packet slots (32 to 128, at most an eighth of its memory) has this size; untouched memory costs nothing.
   */
  maxPacketSize?: number;
  /** Congestion control for what this host sends. Default: the core's. */
  congestion?: CongestionControl;
  /** Serves sessions that peers opened; `connect` names its own router. */
  router?: Router<Session>;
  /** Concurrent requests of one peer; more are answered 5.03. Default 64. */
  maxRequests?: number;
  /**
   * Sessions that peers opened rest when they lose their last path, as their openers may return on another one. Default
   * false: they end.
   */
  rests?: boolean;
  /**
   * Called for every session that a peer opened, once its handshake is complete: set router, onStream, … on it in this
   * call.
   */
  onSession?: (session: Session) => void;
  /** Called when the data plane failed and ten attempts in a row to restart it failed; the attempts continue. */
  onUnrecoverable?: (error: SvcError) => void;
}

/** The peer to reach, the identity to prove, and the properties to expect. */
export interface ConnectTarget {
  /** Responder's name: 'station', 'device:<productId>.<deviceId>', 'device'. */
  name: string;
  /** Full hex fingerprint; another key fails with FINGERPRINT_MISMATCH before our own key or data is sent. */
  pin?: string;
  /** Fields that message 2 must contain, e.g. { ProductId, DeviceId }. */
  expect?: Record<string, string>;
  /** Our identity towards this peer; default: the host's. */
  identity?: PrivateKey;
  /** ms for the handshake, default 10,000. */
  timeout?: number;
  /** ms to the first repeat of message 1: 250 on a LAN, default 500. */
  firstTimeout?: 250 | 500;
  /**
   * The session may have to change its path at once: connection ids are supplied in advance, 1 KiB at each end. Default
   * false.
   */
  migration?: boolean;
  /** The session rests when it loses its last path, so that its owner can find another one. Default false: it ends. */
  rests?: boolean;
  /** Ends the call with STOPPED when it fires. */
  signal?: AbortSignal;
  /** Serves requests of the peer on this session. */
  router?: Router<Session>;
}

/**
 * A direct target: numeric `address` and `port` (from the first socket unless `socket`, an index into `Sockets.bound`,
 * names another), or a ready `path`.
 */
export type ConnectOptions = ConnectTarget & ({ address: string; port: number; socket?: number } | { path: Path });

/** A handshake whose Initiate travels in a request to the base station. */
export interface PreparedConnect {
  /** The Initiate packet, without padding. */
  readonly initiate: Uint8Array;
  /** Continues with the Respond packet. Resolves when the peer is authenticated. @throws as connect */
  establish(respond: Uint8Array, path: Path): Promise<Session>;
  /** Gives up; harmless after establish. */
  cancel(): void;
}
