/**
 * Keeps the sessions of a host across changes of its network and sleep (PROTOCOL.md §6.5). Decisions are in
 * `protocol/roaming/`.
 */
export { Roaming, type RoamingEvent, type RoamingOptions } from './roaming.ts';
