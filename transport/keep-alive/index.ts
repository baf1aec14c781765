/** Keep-alive of a host's sessions, as seldom as its NAT allows (PROTOCOL.md §5). Decisions are `protocol/keep-alive/`. */
export { type ChannelWish, HostKeepAlive, type HostKeepAliveOptions, type KeepAliveReport, type KeepAliveWish } from './host-keep-alive.ts';
