/** Errors that `dgram` reports for datagrams that it cannot send. */
import type { Socket } from 'node:dgram';
import { expect, it } from 'vitest';
import { DgramSender } from '../../../platform/node/dgram-sender.ts';
import { isUnreachable } from '../../../platform/node/udp-errors.ts';

type Callback = (error: Error | null) => void;

const tick = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

/** Each datagram that has a callback fails with the next error. */
function setUp(errors: (string | null)[]) {
  const unreachable: string[] = [];
  const callbacks: boolean[] = [];
  const send = (_bytes: Uint8Array, _port: number, _address: string, callback?: Callback): void => {
    callbacks.push(callback !== undefined);
    const code = callback === undefined ? null : (errors.shift() ?? null);
    if (callback !== undefined) process.nextTick(callback, code === null ? null : Object.assign(new Error(code), { code }));
  };
  const socket = { send, getSendQueueCount: () => 0 } as unknown as Socket;
  const sender = new DgramSender(socket, 'udp4', (address) => unreachable.push(address));
  let released = 0;
  const bytes = new Uint8Array(10);
  return {
    sender,
    unreachable,
    callbacks,
    released: () => released,
    send: (address: string) => sender.send(bytes, 0, 10, address, 1, () => released++),
  };
}

it('reports the first unreachable address of each tick', async () => {
  const { send, unreachable, callbacks, released } = setUp(['ENETUNREACH', 'EPERM', null, 'EADDRNOTAVAIL']);
  for (const address of ['192.0.2.1', '192.0.2.2']) send(address);
  for (let n = 0; n < 4; n++) await tick();
  for (const address of ['192.0.2.3', '192.0.2.4', '192.0.2.5']) {
    send(address);
    for (let n = 0; n < 4; n++) await tick();
  }
  expect(callbacks).toEqual([true, false, true, true, true]);
  expect([unreachable, released()]).toEqual([['192.0.2.1', '192.0.2.5'], 5]);
});

it('reports nothing after close', async () => {
  const { sender, send, unreachable } = setUp(['ENETUNREACH']);
  send('192.0.2.1');
  sender.close();
  for (let n = 0; n < 4; n++) await tick();
  expect(unreachable).toEqual([]);
});

it.each([
  ['ENETUNREACH', true],
  ['EHOSTUNREACH', true],
  ['ENETDOWN', true],
  ['EADDRNOTAVAIL', true],
  ['EPERM', false],
  ['EMSGSIZE', false],
])('%s: %s', (code, expected) => {
  expect(isUnreachable(Object.assign(new Error(code), { code }))).toBe(expected);
});
