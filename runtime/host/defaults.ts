/** Defaults of a host's configuration. */
import type { DataParameters, KeepAlive } from '../../bindings/index.ts';
import type { HostLimits } from './config.ts';

/** PROTOCOL.md §5.8: PING 25 s after the last acknowledged packet, then every 2 s, 15 times. */
export const defaultKeepAlive: KeepAlive = { interval: 25_000, retryInterval: 2_000, maxRetries: 15 };

export const defaultParameters: DataParameters = {
  // Longer than the 144 s in which the peer's least frequent keep-alive detects silence.
  idleTimeout: 180_000,
  maxUdpPayload: 1452,
  initialMaxData: 1024 * 1024,
  initialMaxStreamData: 16 * 1024,
  maxStreams: 2048,
  maxMessages: 256,
  maxAckDelay: 25,
  // What UDP over IPv6 carries (RFC 768); packets limit it further.
  maxDatagram: 65_527,
};

/** The limits of a device (docs/transport.md §1). */
export const defaultLimits: HostLimits = { halfOpen: 64, retryAbove: 16, connections: 64 };

/** Concurrent requests of one peer. */
export const defaultMaxRequests = 64;
