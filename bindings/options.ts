/** Options for opening a core and a connection. */

/** Bytes of the largest message: R of PROTOCOL.md §5. */
export const MESSAGE_LIMIT = 66_560;

/** Sizes of a core, fixed when it is made. */
export interface CoreOptions {
  /** Connection slots; default 64. */
  connections?: number;
  /**
   * Stream records over all connections, messages included; at least 16. Default: one for each 4 KiB of memory (8,192).
   * One peer may hold three eighths of them with byte streams and a quarter with messages.
   */
  streams?: number;
  /** Bytes of linear memory, grown once; default 32 MiB. Untouched pages cost nothing. */
  memory?: number;
  /**
   * Limit of byte-stream buffers over all connections, in units of 256 bytes, at least 128; default: as memory allows.
   */
  streamSegments?: number;
  /**
   * Upper bound for the automatic growth of a connection's receive window, bytes, as far as memory allows; default 16
   * MiB. The window never falls below `initialMaxData`; 0: windows stay as announced.
   */
  connectionWindow?: number;
  /** Largest packet, bytes, 1,200 to 65,000; default 1,452. */
  maxPacketSize?: number;
}

/** Source of the module; `embedded` is the one inside this package. */
export type WasmSource = 'embedded' | URL | Response | BufferSource | WebAssembly.Module;

/** Parameters that one end announces to the other. */
export interface DataParameters {
  /** ms without an authentic packet until the connection ends silently; 0 = never. */
  idleTimeout: number;
  /** Largest UDP payload this end receives, bytes. */
  maxUdpPayload: number;
  /** Bytes that the peer may send over all streams before the application reads; at least 2 × 66,560 is granted. */
  initialMaxData: number;
  /** The same for each byte stream, until its window is raised. Messages always have 66,560. */
  initialMaxStreamData: number;
  /** Byte streams that the peer may have open at a time, up to 65,535. */
  maxStreams: number;
  /** Messages that the peer may have open at a time, up to 65,535. */
  maxMessages: number;
  /** Longest delay of this end's acknowledgements, ms. */
  maxAckDelay: number;
  /** Largest datagram that this end accepts, bytes; 0 = none. */
  maxDatagram: number;
}

/** Liveness check of the other end. */
export interface KeepAlive {
  /** ms after our last acknowledged packet until a PING goes out; 0 = off. */
  interval: number;
  /** ms between further PINGs. */
  retryInterval: number;
  /** PINGs in all before the connection ends. */
  maxRetries: number;
}

/** A path that the caller adds to a connection. */
export interface PathOptions {
  /** 8 bytes: its packets travel behind a Route header with this id. */
  route?: Uint8Array | undefined;
  /** Whether it differs from the active path by the port only: window and RTT carry over. Default false. */
  portOnly?: boolean;
  /** ms between keep-warm challenges; 0, the default: none. */
  keepInterval?: number;
}

/** NewReno (RFC 9002), CUBIC with HyStart++ (RFC 9438, 9406), BBRv3 (draft-ietf-ccwg-bbr). */
export type CongestionControl = 'newreno' | 'cubic' | 'bbr';

/** Results of the handshake, and choices of this end. */
export interface CoreConnectionOptions {
  initiator: boolean;
  /** 32 bytes each; copied, the caller wipes its own. */
  sendKey: Uint8Array;
  receiveKey: Uint8Array;
  /** 32 bytes each: keys of the packet-number masks (PROTOCOL.md §4). */
  sendMaskKey: Uint8Array;
  receiveMaskKey: Uint8Array;
  /** 8 bytes each: the id that the peer writes into its packets, and the one that we write. */
  localId: Uint8Array;
  remoteId: Uint8Array;
  local: DataParameters;
  remote: DataParameters;
  /** Initiator: the whole Complete packet, at most 1,000 bytes; sent as packet 0 and repeated until acknowledged. */
  complete?: Uint8Array;
  /** Client and device; never the station. */
  keepAlive?: KeepAlive;
  /** u32 of randomness for skipped packet numbers (RFC 9000 §21.4). */
  skipSeed: number;
  /** Initial UDP payload of our packets, Route header included; default 1,200. Both ends and the slots bound it. */
  packetSize?: number;
  /** Largest size to which a bulk transfer may raise it by probes (RFC 8899); default `packetSize`. The same bounds. */
  packetCeiling?: number;
  /** 32 random bytes for PATH_CHALLENGE, which the peer must not be able to guess; copied. */
  challengeSeed: Uint8Array;
  /** Default `bbr`. */
  congestion?: CongestionControl;
  /**
   * ms from a handshake packet that was sent once to its answer: the first RTT sample. Default: none, and 333 ms are
   * assumed (RFC 9002 §6.2.2).
   */
  rtt?: number;
  /** Monotonic ms. */
  now: number;
}
