/** What an upgrade holds, and for how long. */
import { EventEmitter } from 'node:events';
import type { Server } from 'node:http';
import { Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { acceptUpgrades, type UpgradeOptions } from '../../../server/websocket/upgrades.ts';

/** Upgrades at a path on a new connection. */
function upgrade(url: string) {
  const release = vi.fn();
  const server = new EventEmitter();
  const options = { addresses: { of: () => '192.0.2.1' }, webSockets: { reserve: () => release, refused: () => {} } };
  acceptUpgrades(server as Server, options as unknown as UpgradeOptions);
  const socket = new Socket();
  server.emit('upgrade', { url, headers: { upgrade: 'websocket', 'sec-websocket-protocol': 'svc.1' } }, socket, Buffer.alloc(0));
  return { release, socket };
}

it('a slot is released when the TCP connection is closed, not before', async () => {
  const { release, socket } = upgrade('/svc/v1');
  expect(release).not.toHaveBeenCalled();
  await new Promise((resolve) => socket.on('close', resolve).destroy());
  expect(release).toHaveBeenCalledOnce();
});

it('a refused connection is closed after a second, whatever it sends meanwhile', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { socket } = upgrade('/svc/v2');
  vi.advanceTimersByTime(999);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});
