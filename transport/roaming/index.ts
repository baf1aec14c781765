/** Keeps the sessions of a host over changes of its network and over sleep (PROTOCOL.md §6.5). Decisions are `protocol/roaming/`. */
export { Roaming, type RoamingEvent, type RoamingOptions } from './roaming.ts';
