/** Pings of a peer that does not read. */
import { EventEmitter } from 'node:events';
import { expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { AcceptedPipe } from '../../../server/websocket/pipe.ts';

it('pings are answered up to a limit of waiting bytes', () => {
  const webSocket = Object.assign(new EventEmitter(), { bufferedAmount: 0, pong: vi.fn(), close: vi.fn() });
  const pipe = new AcceptedPipe(webSocket as unknown as WebSocket, 0, { address: '192.0.2.1', port: 1 });
  pipe.listen({ receive: vi.fn(), closed: vi.fn() }, () => 0);
  for (const bufferedAmount of [0, 65_536, 65_537, 1 << 20, 0]) {
    webSocket.bufferedAmount = bufferedAmount;
    webSocket.emit('ping', Buffer.from(`${bufferedAmount}`));
  }
  expect(webSocket.pong.mock.calls.map(([data]) => Number(data))).toEqual([0, 65_536, 0]);
  expect(webSocket.close).not.toHaveBeenCalled();
});
