/** WebSockets as sockets for datagrams. */
export { WEBSOCKET_PATH } from '../../protocol/station-dial/index.ts';
export { type OpenWebSocketOptions, openWebSocketSocket, SUBPROTOCOL } from './open.ts';
export { SharedQueue } from './shared-queue.ts';
export { WebSocketCut } from './silence.ts';
export { MAX_MESSAGE, WebSocketSocket, type WebSocketSocketOptions } from './socket.ts';
