/** Counters of an endpoint: what was dropped and why, for logs and tests. */

/** Live counters; those without a word are what they are called. */
export interface EndpointStats {
  /** Datagrams that are no packet of ours. */
  malformed: number;
  /** Initiates whose mac1 holds for no name of ours. */
  badMac: number;
  /** Handshake packets that did not hold, or whose payload is not acceptable. */
  badHandshake: number;
  /** Packets for an id or route nobody has. */
  unknownId: number;
  /** Data packets whose tag does not hold, repeats included. */
  unauthenticated: number;
  /** Packets held back by a rate limit, a full table, or the anti-amplification limit. */
  limited: number;
  retriesSent: number;
  versionsSent: number;
  resetsSent: number;
  /** Half-open handshakes given up: expired or evicted. */
  halfOpenLost: number;
  halfOpen: number;
  /** Connections, those being dialed and those closing included. */
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
