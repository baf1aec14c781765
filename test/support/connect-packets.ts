/**
 * Bytes that an attacker sends for a connect through the station over an open channel: the request with Initiate, and
 * Complete. Counted in test/runtime/rendezvous/abuse.test.ts; floods of attackers are compared with it.
 */
export const CONNECT_PACKETS: readonly number[] = [187, 274];
