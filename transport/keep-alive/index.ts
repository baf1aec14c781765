/** Keep-alive of a host's sessions, as seldom as its NAT allows (docs/transport.md §6). Decisions are `protocol/keep-alive/`. */
export { type ChannelWish, HostKeepAlive, type HostKeepAliveOptions, type KeepAliveReport, type KeepAliveWish } from './host-keep-alive.ts';
