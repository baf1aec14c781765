/** Decisions about the way to a base station, without sockets and clocks. */
export { BlockedNetworks, networkKey } from './blocked-networks.ts';
export { NoUpgradeError, triesNext, WEBSOCKET_PATH, type WebSocketChoice, webSocketUrls } from './candidates.ts';
export { ChannelPaths, type ChannelPathsEvent, type Over } from './channel-paths.ts';
