/**
 * Bytes of what a stranger sends for a connect through the station where the channel is there: the request with Initiate, and Complete.
 * Counted in test/transport/rendezvous/abuse.test.ts, and what floods of strangers are compared with.
 */
export const CONNECT_PACKETS: readonly number[] = [187, 262];
