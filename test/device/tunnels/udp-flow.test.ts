/** The flow of a UDP tunnel whose service has several addresses. */
import { beforeEach, expect, test } from 'vitest';
import type { DeviceConnection } from '../../../device/connections.ts';
import { PinnedAddresses } from '../../../device/tunnels/pinned-address.ts';
import { UdpFlow } from '../../../device/tunnels/udp-flow.ts';
import type { ConnectOptions } from '../../../platform/environment.ts';
import { noDatagrams, type Stream } from '../../../runtime/session/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const NAMES = ['::1', '127.0.0.1', '192.0.2.1'];
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

let addresses: PinnedAddresses;
/** Sockets by address, and what was sent to each. */
let sockets: Map<string, ConnectOptions>;
let sent: string[];
/** What the client has received. */
let received: string[];
let aborted: number[];
let fromClient: (payload: Uint8Array) => void;
/** Addresses for which the system has no socket. */
let without: string[];

beforeEach(() => {
  [sockets, sent, received, aborted, without] = [new Map(), [], [], [], []];
  addresses = new PinnedAddresses('localhost', async () => NAMES);
});

async function joined(): Promise<void> {
  const network = {
    connect: async (options: ConnectOptions) => {
      if (without.includes(options.address)) throw new Error('no route');
      sockets.set(options.address, options);
      const send = (payload: Uint8Array) => sent.push(`${options.address} ${text(payload)}`) > 0;
      return { send, unref: () => {}, close: () => void sockets.delete(options.address) };
    },
  };
  const client = {
    openFlow: (_: unknown, receive: (payload: Uint8Array) => void) => {
      fromClient = receive;
      return { send: (payload: Uint8Array) => received.push(text(payload)), close: () => {} };
    },
  };
  const environment = { clock: new ManualClock(), network } as never;
  const flow = await UdpFlow.open({
    environment,
    client: client as unknown as DeviceConnection,
    addresses,
    port: 7,
    idleTimeout: 1_000,
    counts: noDatagrams(),
  });
  const stream = { read: () => new Promise(() => {}), abort: (code: number) => void aborted.push(code) };
  void flow.join(stream as unknown as Stream);
}

const say = (payload: string): void => fromClient(new TextEncoder().encode(payload));
const failAt = async (address: string): Promise<void> => {
  const { failed } = sockets.get(address)!;
  sockets.delete(address);
  failed(new Error('refused'));
  await new Promise(setImmediate);
};

test('a service that listens on a later address gets the datagram there, and the next flow begins there', async () => {
  await joined();
  say('one');
  say('two');
  await failAt('::1');
  sockets.get('127.0.0.1')!.receive(new TextEncoder().encode('answer'));
  expect(sent).toEqual(['::1 one', '::1 two', '127.0.0.1 two']);
  expect([received, await addresses.all()]).toEqual([['answer'], ['127.0.0.1', '::1', '192.0.2.1']]);
  await joined();
  say('three');
  expect(sent.at(-1)).toBe('127.0.0.1 three');
});

test('an address without a route is passed over', async () => {
  without = ['::1', '127.0.0.1'];
  await joined();
  say('one');
  expect(sent).toEqual(['192.0.2.1 one']);
  without = NAMES;
  await expect(joined()).rejects.toThrow('no route');
});

test('a flow ends when no address is left, or the service that has answered is gone', async () => {
  await joined();
  say('one');
  await failAt('::1');
  await failAt('127.0.0.1');
  expect(aborted).toEqual([]);
  await failAt('192.0.2.1');
  expect(aborted).toHaveLength(1);
  await joined();
  sockets.get('::1')!.receive(new TextEncoder().encode('answer'));
  await failAt('::1');
  expect(aborted).toHaveLength(2);
});

test('a long datagram is not kept', async () => {
  await joined();
  say('x'.repeat(1_501));
  await failAt('::1');
  expect(sent).toHaveLength(1);
});
