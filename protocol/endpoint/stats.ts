/** Counters of an endpoint: packets dropped, by reason, and connections, for logs and tests. */

/** Live counters; those without a comment are what their name says. */
export interface EndpointStats {
  /** Datagrams that are not packets of this protocol. */
  malformed: number;
  /** Initiates whose mac1 is valid for none of our names. */
  badMac: number;
  /** Handshake packets that are invalid, or whose payload is not acceptable. */
  badHandshake: number;
  /** Packets for an id or route without an owner. */
  unknownId: number;
  /** Data packets whose tag does not verify, repeats included. */
  unauthenticated: number;
  /** Packets withheld by a rate limit, a full table, or the anti-amplification limit. */
  limited: number;
  retriesSent: number;
  versionsSent: number;
  resetsSent: number;
  /** Half-open handshakes dropped: expired or evicted. */
  halfOpenLost: number;
  halfOpen: number;
  /** Connections, including those being dialed and closing ones. */
  connections: number;
  /** Connections closed with BUSY. */
  refused: number;
}

/** Counters at zero. */
export function newStats(): EndpointStats {
  return {
    malformed: 0,
    badMac: 0,
    badHandshake: 0,
    unknownId: 0,
    unauthenticated: 0,
    limited: 0,
    retriesSent: 0,
    versionsSent: 0,
    resetsSent: 0,
    halfOpenLost: 0,
    halfOpen: 0,
    connections: 0,
    refused: 0,
  };
}
