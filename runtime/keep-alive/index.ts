/**
 * Keep-alive of a host's sessions, as rare as its NAT allows (docs/transport.md §6). Decisions are in
 * `protocol/keep-alive/`.
 */
export { type ChannelWish, HostKeepAlive, type HostKeepAliveOptions, type KeepAliveReport, type KeepAliveWish } from './host-keep-alive.ts';
