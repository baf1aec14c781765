/**
 * Random and mutated datagrams at an endpoint in every state. None may throw, change a connection, open one, or make
 * the endpoint send more than the anti-amplification limit allows.
 */
import { describe, expect, it } from 'vitest';
import type { CryptoProvider } from '../../../protocol/crypto-provider.ts';
import { prologue } from '../../../protocol/endpoint/negotiation.ts';
import { encodeInitiatorOffer } from '../../../protocol/endpoint/parameters.ts';
import { HandshakeState, XX } from '../../../protocol/noise/index.ts';
import {
  decodeInitiate,
  decodeRespond,
  encodeComplete,
  encodeInitiate,
  encodeRespond,
  mac1Key,
  padded,
} from '../../../protocol/packet/index.ts';
import { generator, nativeHost, nobleAead, seededBytes } from '../../support/crypto.ts';
import { dial, type PolledEndpoint, pair, parameters } from '../../support/fixture/endpoints.ts';

const TYPES = [0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x88, 0xc0, 0xe0, 0xff];

describe('hostile datagrams', () => {
  it('random bytes change nothing', { tags: ['slow'] }, () => {
    const { network, client, device } = busy(1);
    const random = generator(11);
    const bytes = seededBytes(12);
    for (let i = 0; i < 10_000; i++) {
      const datagram = bytes(Math.floor(random() * (i % 10 === 0 ? 1500 : 80)));
      if (datagram.length > 0 && i % 4 !== 0) datagram[0] = TYPES[i % TYPES.length]!;
      inject(client, device, datagram, i);
    }
    stillWorks(client, device);
    expect(network.now).toBeGreaterThan(0);
  });

  it('mutated packets of a live exchange change nothing', { tags: ['slow'] }, () => {
    const { network, client, device } = busy(2);
    const random = generator(21);
    const samples = network.sent.map(({ bytes }) => bytes);
    expect(new Set(samples.map((sample) => sample[0]))).toEqual(new Set([0x80, 0x81, 0x82, 0x83, 0xc0]));
    for (let i = 0; i < 10_000; i++) inject(client, device, mutated(samples[i % samples.length]!, random), i);
    stillWorks(client, device);
  });

  it('replays of everything that was sent change nothing', () => {
    const { network, client, device } = busy(3);
    const samples = [...network.sent];
    for (let round = 0; round < 3; round++) {
      for (const { to, from, bytes } of samples) to.endpoint.receive(bytes.slice(), to.path(from), network.now);
    }
    network.pass(100);
    expect(device.accepted).toHaveLength(1);
    stillWorks(client, device);
  });

  it('do no harm to an endpoint that is dialing', { tags: ['slow'] }, () => {
    const { network, client, device } = pair(4);
    network.tap = ({ from }) => from !== client;
    const connection = dial(client, device);
    network.pass(100);
    const [initiate] = network.sent;
    const random = generator(41);
    const bytes = seededBytes(42);
    for (let i = 0; i < 5_000; i++) {
      const datagram = bytes(1 + Math.floor(random() * 300));
      datagram[0] = [0x81, 0x82, 0x85, 0xc0][i % 4]!;
      // An attacker on the path knows the id. Retry and Versions are left out: one Retry is honoured, and Versions may
      // end the attempt.
      if (datagram[0] === 0x82 && datagram.length > 9) datagram.set(initiate!.bytes.subarray(3, 11), 1);
      client.endpoint.receive(datagram, client.path(device), network.now);
    }
    network.tap = undefined;
    expect(network.run(() => connection.state === 'open')).toBe(true);
  });
});

describe('hostile peers that complete handshakes', () => {
  const payloads = (count: number, seed: number): Uint8Array[] => {
    const random = generator(seed);
    const bytes = seededBytes(seed);
    const good = encodeInitiatorOffer({ ...offer, versions: Uint8Array.of(1), suites: Uint8Array.of(1) });
    return Array.from({ length: count }, (_, i) => {
      // Sometimes as large as a loopback datagram: more than the handshake's cipher takes.
      if (i % 50 === 2) return bytes(16_200 + Math.floor(random() * 49_000));
      if (i % 2 === 0) return bytes(Math.floor(random() * 300));
      const damaged = good.slice();
      damaged[Math.floor(random() * 60)] = Math.floor(random() * 256);
      return damaged;
    });
  };

  function attackResponder(attacks: readonly Uint8Array[]): void {
    const { network, client, device } = pair(5);
    const crypto = nativeHost(55);
    for (const payload of attacks) {
      const handshake = noise(crypto, true);
      const source = crypto.randomBytes(8);
      const initiate = { version: 1, suite: 1, source, token: new Uint8Array(0), message: handshake.writeMessage(new Uint8Array(0)) };
      device.endpoint.receive(padded(encodeInitiate(crypto, mac1Key(crypto, NAME), initiate)), device.path(client), network.now);
      const respond = decodeRespond(packetOf(device))!;
      expect(handshake.readMessage(respond.message)).not.toBeNull();
      const complete = encodeComplete({ destination: respond.source, message: handshake.writeMessage(payload) });
      device.endpoint.receive(complete, device.path(client), network.now);
      network.pass(1000);
      // At most the attacker's own connection can be established.
      for (const connection of device.accepted.splice(0)) connection.close(0, '', network.now);
    }
    network.pass(20_000);
    expect([device.endpoint.idle, device.endpoint.stats.halfOpen]).toEqual([true, 0]);
  }

  function attackInitiator(attacks: readonly Uint8Array[]): void {
    const { network, client, device } = pair(6);
    const crypto = nativeHost(66);
    for (const payload of attacks) {
      const connection = dial(client, device);
      const initiate = decodeInitiate(packetOf(client))!;
      const handshake = noise(crypto, false);
      handshake.readMessage(initiate.message);
      const respond = encodeRespond({
        destination: initiate.source,
        source: crypto.randomBytes(8),
        message: handshake.writeMessage(payload),
      });
      client.endpoint.receive(respond, client.path(device), network.now);
      expect(connection.state).toBe('handshaking');
      connection.close(0, '', network.now);
      network.pass(1);
    }
    expect(client.endpoint.idle).toBe(true);
    expect(client.endpoint.stats.badHandshake).toBe(attacks.length);
  }

  it('cannot harm a responder with the payload of message 3', { tags: ['slow'] }, () => attackResponder(payloads(60, 51)));

  it('cannot harm an initiator with the payload of message 2', () => attackInitiator(payloads(60, 61)));

  it('cannot harm a responder with many payloads of message 3', { tags: ['slow'] }, () => attackResponder(payloads(1_000, 52)));

  it('cannot harm an initiator with many payloads of message 2', { tags: ['slow'] }, () => attackInitiator(payloads(1_000, 62)));
});

const NAME = 'device:p.d';
const offer = { parameters, flowParts: 0, id: new Uint8Array(8), resetToken: new Uint8Array(16) };

function noise(crypto: CryptoProvider, initiator: boolean): HandshakeState {
  const staticKey = crypto.generateKey();
  return new HandshakeState({ pattern: XX, initiator, prologue: prologue(1, 1, NAME), crypto, aead: nobleAead, staticKey });
}

/** Takes the packet that a node sends now. */
function packetOf(node: PolledEndpoint): Uint8Array {
  const batch = node.endpoint.transmit(node.network.now)!;
  const at = batch.offsets[0]!;
  return batch.buffer.slice(at, at + batch.lengths[0]!);
}

/** A client with an open connection to a device that sends Retry. */
function busy(seed: number) {
  const setup = pair(seed, { device: { limits: { halfOpen: 16, retryAbove: 0, connections: 4 } } });
  const { network, client, device } = setup;
  dial(client, device);
  network.onEvent = (node, of, event) => {
    if (event.kind === 'opened') of.messages.send(Uint8Array.of(1, 2, 3));
    if (event.kind === 'message' && node === device) of.messages.send(event.data);
  };
  expect(network.run(() => client.find('message') !== undefined)).toBe(true);
  network.pass(500);
  return setup;
}

function inject(client: PolledEndpoint, device: PolledEndpoint, datagram: Uint8Array, i: number): void {
  const { network } = client;
  const [to, from] = i % 2 === 0 ? [client, device] : [device, client];
  to.endpoint.receive(datagram, to.path(from, i % 3 === 0 ? 999 : 4433), network.now);
  if (i % 64 === 0) network.pass(1);
}

/** Flips bits, cuts, appends, or changes the type; never the identity. */
function mutated(sample: Uint8Array, random: () => number): Uint8Array {
  const bytes = sample.slice();
  const kind = Math.floor(random() * 4);
  const at = Math.floor(random() * Math.min(bytes.length, 120));
  if (kind === 0) return bytes.subarray(0, Math.floor(random() * Math.min(bytes.length, 200)));
  if (kind === 1) return Uint8Array.of(...bytes, Math.floor(random() * 256));
  if (kind === 2) bytes[0] = TYPES[Math.floor(random() * TYPES.length)]!;
  bytes[at] = bytes[at]! ^ (1 << Math.floor(random() * 8));
  return bytes;
}

function stillWorks(client: PolledEndpoint, device: PolledEndpoint): void {
  const { network } = client;
  expect(device.accepted).toHaveLength(1);
  expect(client.kinds().filter((kind) => kind === 'closed')).toEqual([]);
  const [[connection]] = client.events as [[(typeof client.accepted)[0], unknown]];
  const before = client.kinds().filter((kind) => kind === 'message').length;
  connection.messages.send(Uint8Array.of(7));
  expect(network.run(() => client.kinds().filter((kind) => kind === 'message').length === before + 1, 2000)).toBe(true);
  expect(client.endpoint.stats.connections).toBe(1);
}
