/** The queues of a local UDP tunnel, full: to the device and to local programs. */
import { expect, test } from 'vitest';
import { MAX_WAITING } from '../../../client/tunnels/udp-flow.ts';
import { MAX_LEAVING, MAX_LEAVING_BYTES, UdpTunnelListener } from '../../../client/tunnels/udp-listener.ts';
import type { BoundSocket } from '../../../platform/environment.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A tunnel whose session has the parts that a flow uses, and whose socket holds what it is given. */
async function tunnel(streamId: number) {
  let receive: BoundSocketReceive = () => {};
  let fromDevice: (payload: Uint8Array) => void = () => {};
  let open = (): void => {};
  const sentToDevice: number[] = [];
  const leaving: Parameters<BoundSocket['send']>[4][] = [];
  const stream = {
    id: streamId,
    opened: new Promise<void>((resolve) => {
      open = () => {
        stream.id = 4;
        resolve();
      };
    }),
    read: () => new Promise<never>(() => {}),
    close: async () => {},
    abort: () => {},
  };
  const session = {
    isOpen: true,
    streams: { open: () => stream },
    datagrams: {
      open: (_id: number, received: (payload: Uint8Array) => void) => {
        fromDevice = received;
        return { send: (payload: Uint8Array) => sentToDevice.push(payload[0]!), close: () => {} };
      },
    },
  } as unknown as Session;
  const socket = { port: 1, close: () => {}, send: (...[, , , , sent]: Parameters<BoundSocket['send']>) => leaving.push(sent) };
  const network = {
    bind: async (options: { receive: BoundSocketReceive }) => {
      receive = options.receive;
      return socket as unknown as BoundSocket;
    },
  };
  const listener = await UdpTunnelListener.listen({ host: { clock: new ManualClock(), network: network as never } }, 0, {});
  listener.attach(session, 1);
  const path = { address: '127.0.0.1', port: 2 } as never;
  return {
    listener,
    sentToDevice,
    leaving,
    open: async () => {
      open();
      await stream.opened;
    },
    fromProgram: (byte: number) => receive(Uint8Array.of(byte), path),
    fromDevice: (payload: Uint8Array) => fromDevice(payload),
  };
}

type BoundSocketReceive = (datagram: Uint8Array, path: never) => void;

test('of the datagrams that wait for a stream the oldest is dropped', async () => {
  const { fromProgram, listener, open, sentToDevice } = await tunnel(-1);
  for (let byte = 0; byte < MAX_WAITING + 3; byte++) fromProgram(byte);
  expect(listener.stats().dropped).toBe(3);
  await open();
  expect(sentToDevice).toEqual(Array.from({ length: MAX_WAITING }, (_, index) => index + 3));
});

test.each([
  ['datagrams', MAX_LEAVING, 1],
  ['bytes', MAX_LEAVING_BYTES / 2 ** 15, 2 ** 15],
])('while too many %s wait to leave for local programs, further datagrams are dropped', async (_, most, length) => {
  const { fromDevice, fromProgram, leaving, listener } = await tunnel(4);
  fromProgram(1);
  for (let sent = 0; sent < most + 1; sent++) fromDevice(new Uint8Array(length));
  expect([leaving.length, listener.stats().dropped]).toEqual([most, 1]);
  leaving[0]!(0);
  fromDevice(new Uint8Array(length));
  expect([leaving.length, listener.stats().dropped]).toEqual([most + 1, 1]);
});
