/** WebSockets as sockets for datagrams. */
export { type OpenWebSocketOptions, openWebSocketSocket, SUBPROTOCOL, WEBSOCKET_PATH } from './open.ts';
export { SharedQueue } from './shared-queue.ts';
export { MAX_MESSAGE, WebSocketSocket, type WebSocketSocketOptions } from './socket.ts';
