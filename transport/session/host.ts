/**
 * One party on the network: a Core, an Endpoint, its sockets and the Driver, with a Session for every connection.
 * Device, client and base station each open one (or several: they share nothing).
 */
import type { CoreOptions, DataParameters } from '../../bindings/index.ts';
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/host.ts';
import type { Path } from '../../protocol/path.ts';
import type { Environment, UdpSocket } from '../environment.ts';
import type { KeepAlive, Session } from './session.ts';

export interface Bind {
  /** 0 = any free port */
  port: number;
  /** numeric address; default: all, IPv4 and IPv6 */
  host?: string;
  /** the device's local socket: its paths may count as local */
  local?: boolean;
}

export interface HostConfig {
  identity: PrivateKey;
  binds: readonly Bind[];
  /** names answered on a path; without it nothing is accepted */
  responder?: (path: Path) => readonly string[];
  /** goes out in message 2 (a device: { ProductId, DeviceId }) */
  info?: Record<string, unknown>;
  parameters?: Partial<DataParameters>;
  /** for connections of this host (client, device; never a base station) */
  keepAlive?: KeepAlive;
  limits?: { halfOpen?: number; retryAbove?: number; connections?: number };
  /** 32 bytes kept beside the identity key; default: random, so that peers of an earlier run only notice by keep-alive */
  resetSecret?: Uint8Array;
  core?: CoreOptions;
  /** router of sessions the peer opened; `connect` names its own */
  router?: Router<Session>;
  /** requests a peer may have open at this host per session; more are answered 5.03. Default 64 */
  maxRequests?: number;
  /** every session the peer opened, once its handshake is complete; set router, onStream … on it in this call */
  onSession?: (session: Session) => void;
  /**
   * Sees every datagram before the endpoint; true = taken (the base station's relay). Must not keep `datagram` after it returns
   * except through `Host.send`, which copies.
   */
  intercept?: (datagram: Uint8Array, path: Path) => boolean;
}

export interface ConnectTarget {
  /** responder's name: 'station', 'device:<productId>.<deviceId>', 'device' */
  name: string;
  /** full hex fingerprint; a different key fails with the key-mismatch error before anything is sent */
  pin?: string;
  /** what message 2 must say, e.g. { ProductId, DeviceId } */
  expect?: Record<string, string>;
  /** our identity towards this peer; default: the host's */
  identity?: PrivateKey;
  /** ms for the handshake, default 10,000 */
  timeout?: number;
  /** first repeat of message 1: 250 on a LAN, else 500 (default) */
  firstTimeout?: 250 | 500;
  /** abort: STOPPED */
  signal?: AbortSignal;
  /** serves what the peer asks on this session */
  router?: Router<Session>;
}

/** Direct: numeric `address` and `port` (from the first socket unless `socket` names another), or a ready `path`. */
export type ConnectOptions = ConnectTarget & ({ address: string; port: number; socket?: number } | { path: Path });

/** A handshake whose Initiate travels inside a request to the base station. */
export interface PreparedConnect {
  /** the whole Initiate packet */
  readonly initiate: Uint8Array;
  /** Goes on with the Respond packet that came back. Resolves when the peer is authenticated. @throws as connect */
  establish(respond: Uint8Array, path: Path): Promise<Session>;
  /** Gives up; harmless after establish. */
  cancel(): void;
}

export class Host {
  /** @throws LocalError PORT_IN_USE, PRIVILEGED_PORT */
  static open(environment: Environment, config: HostConfig): Promise<Host> {
    void [environment, config];
    throw new Error('not there yet');
  }
  onSession: ((session: Session) => void) | null = null;
  intercept: ((datagram: Uint8Array, path: Path) => boolean) | null = null;
  get environment(): Environment {
    throw new Error('not there yet');
  }
  get fingerprint(): string {
    throw new Error('not there yet');
  }
  get sockets(): readonly UdpSocket[] {
    throw new Error('not there yet');
  }
  /** Sessions now open, both directions. */
  get sessions(): ReadonlySet<Session> {
    throw new Error('not there yet');
  }
  /**
   * Connects; resolves when the peer is authenticated.
   * @throws TIMEOUT, STOPPED (signal, host closed), RemoteError (key mismatch, wrong ids, busy), OUT_OF_MEMORY
   */
  connect(options: ConnectOptions): Promise<Session> {
    void options;
    throw new Error('not there yet');
  }
  /** First half of a connect through the base station. */
  prepare(target: ConnectTarget): PreparedConnect {
    void target;
    throw new Error('not there yet');
  }
  /**
   * A relayed Initiate arrived (device: POST /p2p/connect). Returns the Respond packet to send back; the session shows up in onSession
   * when the Complete arrives on `path`.
   * @throws RemoteError when it is refused
   */
  acceptRelayed(initiate: Uint8Array, path: Path): Uint8Array {
    void [initiate, path];
    throw new Error('not there yet');
  }
  /**
   * The path through the base station `channel` with our end's route id. Same arguments, same object. Sessions on it end with CLOSED when the
   * channel's session ends, or when the station answers with a Reset that carries `resetToken` (16 bytes).
   */
  routePath(channel: Session, routeId: Uint8Array, resetToken?: Uint8Array): Path {
    void [channel, routeId, resetToken];
    throw new Error('not there yet');
  }
  /** Sends one raw datagram (copied) on a path of this host; the base station's relay. */
  send(datagram: Uint8Array, path: Path): void {
    void [datagram, path];
    throw new Error('not there yet');
  }
  /** Closes every session (its peer is told), waits at most `timeout` ms (default 1,000) for that, closes the sockets. Calling again is harmless. */
  close(timeout?: number): Promise<void> {
    void timeout;
    throw new Error('not there yet');
  }
  stats(): Readonly<Record<string, number>> {
    throw new Error('not there yet');
  }
}
