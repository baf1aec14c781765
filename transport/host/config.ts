/** What a host is given: types only. */
import type { CongestionControl, CoreOptions, DataParameters, KeepAlive } from '../../bindings/index.ts';
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import type { EndpointLimits } from '../../protocol/endpoint/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { BindOptions } from '../environment.ts';
import type { Session } from '../session/session.ts';

/** A socket of the host. */
export type Bind = Omit<BindOptions, 'receive' | 'unreachable'>;

/** What follows changes of the network of a host (`roaming/`). */
export interface NetworkWatcher {
  /** A session has opened. */
  opened(session: Session): void;
  /** As BindOptions.unreachable, of the sockets that the host has bound. */
  unreachable(address: string): void;
}

/** Read at every decision, so they may be changed while the host runs (`Host.limits`). */
export type HostLimits = EndpointLimits;

/** Everything a host is opened with. */
export interface HostConfig {
  identity: PrivateKey;
  binds: readonly Bind[];
  /** Names answered on a path; without it nothing is accepted. */
  responder?: (path: Path) => readonly string[];
  /** Goes out in message 2 (a device: { ProductId, DeviceId }). */
  info?: Record<string, unknown>;
  /** What differs from the defaults of `defaultParameters`. */
  parameters?: Partial<DataParameters>;
  /** Of the connections this host opens; who accepts one has its idle timeout. Default 25 s, 2 s, 15 times. */
  keepAlive?: KeepAlive;
  limits?: Partial<HostLimits>;
  /** How far `limits.connections` may be raised while the host runs; `core.connections` must have slots for as many. Default: not at all. */
  capacity?: number;
  /** 32 bytes kept beside the identity key, so that peers notice our restart by Reset; default: random. */
  resetSecret?: Uint8Array;
  core?: CoreOptions;
  /** Peers may open byte streams to us (a device). */
  acceptStreams?: boolean;
  /** Receive window an accepted stream starts with, in bytes; it grows by itself, up to 3.75 MiB, as the application reads. Default 64 KiB. */
  streamWindow?: number;
  /**
   * Largest packet that is sent and taken, bytes of UDP payload, 1,200 to 65,000; default the network's. Bulk transfers find out by probes
   * what the path carries of it; above 1,452 they try only on loopback and on links of stated MTU. Each of the core's packet slots (32 to
   * 128, at most an eighth of its memory) has this size; what was never filled costs nothing.
   */
  maxPacketSize?: number;
  /** Congestion control of what this host sends. Default: the core's. */
  congestion?: CongestionControl;
  /** Serves sessions the peer opened; `connect` names its own. */
  router?: Router<Session>;
  /** Requests of one peer served at a time; more are answered 5.03. Default 64. */
  maxRequests?: number;
  /** Sessions that peers open rest when they lose their last path, as their openers may come back on another one. Default false: they end. */
  rests?: boolean;
  /** Every session the peer opened, once its handshake is complete: set router, onStream, … on it in this call. */
  onSession?: (session: Session) => void;
  /** The data plane failed and cannot be started again, ten times in a row; attempts go on. */
  onUnrecoverable?: (error: SvcError) => void;
}

/** Whom to reach, and what to prove and to expect. */
export interface ConnectTarget {
  /** Responder's name: 'station', 'device:<productId>.<deviceId>', 'device'. */
  name: string;
  /** Full hex fingerprint; another key fails with FINGERPRINT_MISMATCH before anything of ours is sent. */
  pin?: string;
  /** What message 2 must say, e.g. { ProductId, DeviceId }. */
  expect?: Record<string, string>;
  /** Our identity towards this peer; default: the host's. */
  identity?: PrivateKey;
  /** ms for the handshake, default 10,000. */
  timeout?: number;
  /** ms to the first repeat of message 1: 250 on a LAN, default 500. */
  firstTimeout?: 250 | 500;
  /** The session may have to change its path at once: connection ids are supplied ahead, 1 KiB at each end. Default false. */
  migration?: boolean;
  /** The session rests when it loses its last path, for its owner to find another one. Default false: it ends. */
  rests?: boolean;
  /** When it fires the call ends with STOPPED. */
  signal?: AbortSignal;
  /** Serves what the peer asks on this session. */
  router?: Router<Session>;
}

/** Direct: numeric `address` and `port` (from the first socket unless `socket`, an index into `Host.sockets`, names another), or a ready `path`. */
export type ConnectOptions = ConnectTarget & ({ address: string; port: number; socket?: number } | { path: Path });

/** A handshake whose Initiate travels inside a request to the base station. */
export interface PreparedConnect {
  /** The whole Initiate packet, without padding. */
  readonly initiate: Uint8Array;
  /** Goes on with the Respond packet that came back. Resolves when the peer is authenticated. @throws as connect */
  establish(respond: Uint8Array, path: Path): Promise<Session>;
  /** Gives up; harmless after establish. */
  cancel(): void;
}
