/**
 * Whole sessions in the simulator, captured at the client's socket. A capture has the input of the decoder (packets and
 * the client's private keys) and what its output is compared with: what the applications saw, and what went through the
 * client's core.
 *
 * 1. Connect, directly or through a base station.
 * 2. A request, and a stream that stays open.
 * 3. Key update: an hour passes in the direct session, for both ends; the client's core is asked in the relayed one.
 * 4. More requests and bytes, the end of the stream.
 * 5. Close.
 */
import type { Core, CoreConnection, CoreConnectionOptions } from '../../bindings/index.ts';
import type { Connection, SvcClient } from '../../client/node.ts';
import type { Device } from '../../device/index.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import { seededBytes } from '../support/crypto.ts';
import { ids } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import type { Captured } from './decoder/decoder.ts';

/** One request as both applications saw it. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly payload: Buffer;
  readonly status: number;
  readonly answer: Buffer;
}

/** What went through one connection of the client's core. Messages and streams by id. */
export interface CoreRecord {
  readonly localId: Buffer;
  readonly remoteId: Buffer;
  readonly sendKey: Buffer;
  readonly receiveKey: Buffer;
  readonly messagesSent: Map<number, Buffer>;
  readonly messagesReceived: Map<number, Buffer>;
  readonly streamsSent: Map<number, Buffer>;
  readonly streamsReceived: Map<number, Buffer>;
  closed: { readonly code: number; readonly reason: string } | null;
  /** As CoreConnection.updateKey. */
  readonly updateKey: () => boolean;
}

export interface Capture {
  readonly packets: readonly Captured[];
  /** Static and ephemeral ones, of the client alone. */
  readonly privateKeys: readonly Uint8Array[];
  /** In the order in which the connections were established. */
  readonly cores: readonly CoreRecord[];
  readonly exchanges: readonly Exchange[];
  readonly stream: { readonly port: number; readonly sent: Buffer; readonly received: Buffer };
  readonly fingerprints: { readonly client: string; readonly device: string };
}

const STREAM_PORT = 7;
const STREAM_BYTES = 12_000;
/** Longer than the lifetime of a key (PROTOCOL.md §4). */
const OVER_AN_HOUR = 3_700_000;
/** Until a core may update its key: 3 PTO. */
const BEFORE_UPDATE = 5_000;
/** Until closing periods are over. */
const WHILE_CLOSING = 20_000;
/** Longer than a message in one packet. */
const LONG_PAYLOAD = 3_000;

/** The client reaches the device at its address. */
export async function captureDirect(): Promise<Capture> {
  const fixture = new ProductFixture({ seed: 'a direct session' });
  const under = await fixture.device();
  await fixture.start(under);
  const client = observedClient(fixture);
  const options = { ProductId: ids.productId, DeviceId: ids.deviceId, Local: false, Remote: false };
  const connection = fixture.directConnection(under.host, under.device.localPort, options, client.client);
  return run(fixture, under.device, client, connection, () => fixture.sim.run(OVER_AN_HOUR));
}

/**
 * The client reaches the device through the base station, and stays there. STUN is off: its requests carry nothing
 * secret, and no keys protect them.
 */
export async function captureRelayed(): Promise<Capture> {
  const fixture = new ProductFixture({ seed: 'a relayed session' });
  await fixture.station({ stunPort: 0 });
  const { device } = await fixture.attached();
  const client = observedClient(fixture);
  const connection = fixture.connection({ Local: false }, client.client);
  return run(fixture, device, client, connection, async () => {
    await fixture.sim.run(BEFORE_UPDATE);
    if (!client.cores.every((core) => core.updateKey())) throw new Error('a core may not update its key yet');
  });
}

interface ObservedClient {
  readonly client: SvcClient;
  readonly environment: SimulatedHost;
  readonly privateKeys: Uint8Array[];
  readonly cores: CoreRecord[];
}

async function run(
  fixture: ProductFixture,
  device: Device,
  observed: ObservedClient,
  connection: Connection,
  updateKeys: () => Promise<unknown>,
): Promise<Capture> {
  const { client, environment, privateKeys, cores } = observed;
  const random = seededBytes(7);
  const exchanges: Exchange[] = [];
  const packets = captured(fixture, environment.name);
  const ask = async (method: string, path: string, payload: Uint8Array): Promise<void> => {
    exchanges.push(await request(fixture, connection, { method, path, payload }));
  };
  serve(device);

  await fixture.settle(connection.connect());
  const fingerprints = { client: connection.getClientFingerprint(), device: device.deviceFingerprint };
  await ask('POST', '/upper', Buffer.from('before'));
  const sent = [random(STREAM_BYTES), random(STREAM_BYTES)] as const;
  const stream = connection.openStream(STREAM_PORT);
  const echoed: Uint8Array[] = [];
  const send = async (data: Uint8Array): Promise<void> => {
    await fixture.settle(stream.write(data));
    echoed.push(await fixture.settle(stream.readAll(data.length)));
  };
  await fixture.settle(stream.opened);
  await send(sent[0]);
  await updateKeys();
  await ask('POST', '/upper', Buffer.from('after'));
  await ask('PUT', '/nowhere', random(LONG_PAYLOAD));
  await send(sent[1]);
  await fixture.settle(stream.close());
  await fixture.settle(connection.close());
  await fixture.sim.run(WHILE_CLOSING);
  await fixture.settle(client.stop());
  await fixture.sim.run(WHILE_CLOSING);
  const whole = { port: STREAM_PORT, sent: Buffer.concat(sent), received: Buffer.concat(echoed) };
  return { packets, privateKeys, cores, exchanges, stream: whole, fingerprints };
}

/** `/upper` returns the text in capitals, and the port echoes. */
function serve(device: Device): void {
  device.addCoapResource('POST', '/upper', ({ payload }) => ({ status: 205, payload: Buffer.from(payload).toString().toUpperCase() }));
  device.addStreamListener(STREAM_PORT, async ({ accept }) => {
    const stream = accept();
    try {
      for (;;) await stream.write(await stream.read());
    } catch {
      await stream.close();
    }
  });
}

async function request(
  fixture: ProductFixture,
  connection: Connection,
  { method, path, payload }: { method: string; path: string; payload: Uint8Array },
): Promise<Exchange> {
  const { status, bytes: answer } = await fixture.settle(connection.request(method, path, { body: payload, format: 0 }));
  return { method, path, payload: Buffer.from(payload), status, answer: Buffer.from(answer) };
}

/** The datagrams of the host as they leave it and as they arrive. */
function captured({ sim }: ProductFixture, host: string): Captured[] {
  const packets: Captured[] = [];
  sim.onPacket = ({ from, data }) => {
    if (from === host) packets.push({ side: 'initiator', datagram: data.slice() });
    return undefined;
  };
  sim.onTrace = ({ to, data }, fate) => {
    if (to === host && fate === 'delivered') packets.push({ side: 'responder', datagram: data.slice() });
  };
  return packets;
}

/** A client whose private keys and core are recorded. */
function observedClient(fixture: ProductFixture): ObservedClient {
  const environment = fixture.host('client');
  const privateKeys: Uint8Array[] = [];
  const cores: CoreRecord[] = [];
  const createCore = environment.createCore.bind(environment);
  Object.assign(environment, {
    crypto: keyed(environment.crypto, privateKeys),
    createCore: async (options: Parameters<typeof createCore>[0]) => recorded(await createCore(options), cores),
  });
  return { client: fixture.client(environment), environment, privateKeys, cores };
}

/** Records each private key that is generated or imported. */
export function keyed(crypto: CryptoProvider, privateKeys: Uint8Array[]): CryptoProvider {
  const note = <K extends { export(): Uint8Array }>(key: K): K => {
    privateKeys.push(key.export());
    return key;
  };
  return { ...crypto, generateKey: () => note(crypto.generateKey()), importKey: (raw) => note(crypto.importKey(raw)) };
}

function recorded(core: Core, records: CoreRecord[]): Core {
  const open = core.open.bind(core);
  core.open = (options: CoreConnectionOptions) => {
    const connection = open(options);
    const record: CoreRecord = {
      localId: Buffer.from(options.localId),
      remoteId: Buffer.from(options.remoteId),
      sendKey: Buffer.from(options.sendKey),
      receiveKey: Buffer.from(options.receiveKey),
      updateKey: () => connection.updateKey(),
      messagesSent: new Map(),
      messagesReceived: new Map(),
      streamsSent: new Map(),
      streamsReceived: new Map(),
      closed: null,
    };
    records.push(record);
    return observe(connection, record);
  };
  return core;
}

/** Records what the endpoint hands to the connection and takes from it. */
function observe(connection: CoreConnection, record: CoreRecord): CoreConnection {
  const { messages, streams, close } = connection;
  const { send, read: readMessage } = messages;
  const { write, read, take } = streams;
  connection.sweep = () => {}; // It would make other parts.
  messages.send = (data) => {
    const id = send.call(messages, data);
    if (id >= 0) record.messagesSent.set(id, Buffer.from(data));
    return id;
  };
  messages.read = (id) => {
    const data = readMessage.call(messages, id);
    record.messagesReceived.set(id, Buffer.from(data));
    return data;
  };
  streams.write = (id, data, start = 0, end = data.length) => {
    const taken = write.call(streams, id, data, start, end);
    append(record.streamsSent, id, data.subarray(start, start + taken));
    return taken;
  };
  streams.read = (id, target) => {
    const length = read.call(streams, id, target);
    if (length > 0) append(record.streamsReceived, id, target.subarray(0, length));
    return length;
  };
  streams.take = (id, max) => {
    const data = take.call(streams, id, max);
    if (data !== null) append(record.streamsReceived, id, data);
    return data;
  };
  connection.close = (code, reason, now) => {
    record.closed ??= { code, reason: Buffer.from(reason).toString() };
    close.call(connection, code, reason, now);
  };
  return connection;
}

function append(streams: Map<number, Buffer>, id: number, data: Uint8Array): void {
  streams.set(id, Buffer.concat([streams.get(id) ?? Buffer.alloc(0), data]));
}
