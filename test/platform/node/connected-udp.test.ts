import { createSocket, Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, it, vi } from 'vitest';
import { connectUdp, MAX_QUEUED } from '../../../platform/node/connected-udp.ts';

afterEach(() => void vi.restoreAllMocks());

it('drops datagrams while more bytes wait than the limit allows, and sends again when they have left', async () => {
  const service = createSocket('udp4').bind(0, '127.0.0.1');
  await once(service, 'listening');
  const failed = vi.fn();
  const socket = await connectUdp({ address: '127.0.0.1', port: service.address().port, receive: () => {}, failed });
  const queued = vi.spyOn(Socket.prototype, 'getSendQueueSize').mockReturnValue(MAX_QUEUED + 1);
  const first = once(service, 'message');
  expect(socket.send(Uint8Array.of(1))).toBe(false);
  queued.mockReturnValue(MAX_QUEUED);
  expect(socket.send(Uint8Array.of(2))).toBe(true);
  const [datagram] = (await first) as [Buffer];
  expect([...datagram]).toEqual([2]);
  expect(failed).not.toHaveBeenCalled();
  socket.close();
  service.close();
});
