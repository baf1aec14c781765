/** An endpoint against a hand-written peer that follows the handshake except in one point. */
import { describe, expect, it, vi } from 'vitest';
import { prologue } from '../../../protocol/endpoint/negotiation.ts';
import { encodeInitiatorOffer } from '../../../protocol/endpoint/parameters.ts';
import { HandshakeState, XX } from '../../../protocol/noise/index.ts';
import {
  decodeInitiate,
  decodeRespond,
  encodeComplete,
  encodeInitiate,
  encodeRetry,
  mac1Key,
  padded,
} from '../../../protocol/packet/index.ts';
import { nativeHost, nobleAead } from '../../support/crypto.ts';
import { dial, type EndpointPair, type PolledEndpoint, pair, parameters } from '../../support/fixture/endpoints.ts';

const NAME = 'device:p.d';

describe('a responder', () => {
  it('accepts only a Complete that names the source id of the Initiate', () => {
    const { peer, device } = initiated(1);
    device.receive(peer.complete({ id: new Uint8Array(8).fill(9) }));
    expect([device.node.accepted.length, device.node.endpoint.stats.badHandshake]).toEqual([0, 1]);
    device.receive(peer.again().complete({}));
    expect(device.node.accepted).toHaveLength(1);
  });

  it.each([
    ['known ones', [1], [1], 1],
    ['an unknown version as well', [9, 1], [1], 1],
    ['no known version', [9], [1], 0],
    ['no known suite', [1], [9], 0],
  ])('handles a peer that offered %s: %j, %j', (_, versions, suites, accepted) => {
    const { peer, device } = initiated(2);
    device.receive(peer.complete({ versions: Uint8Array.from(versions), suites: Uint8Array.from(suites) }));
    expect(device.node.accepted).toHaveLength(accepted);
    expect(device.node.endpoint.stats.refused).toBe(1 - accepted);
  });

  it('drops a Data packet before the Complete that is longer than maxUdpPayload', () => {
    const { peer, device } = initiated(3);
    device.receive(peer.data(parameters.maxUdpPayload));
    expect(device.node.endpoint.stats.limited).toBe(0);
    device.receive(peer.data(parameters.maxUdpPayload + 1));
    expect(device.node.endpoint.stats.limited).toBe(1);
  });

  it('drops a Complete that differs from the one that opened the connection', () => {
    const { peer, device } = initiated(4);
    const complete = peer.complete({});
    device.receive(complete);
    device.receive(complete);
    expect(device.node.endpoint.stats.badHandshake).toBe(0);
    device.receive(complete.with(complete.length - 1, complete.at(-1)! ^ 1));
    expect(device.node.endpoint.stats.badHandshake).toBe(1);
  });

  it.each([['Complete'], ['time']])('wipes the handshake keys on its %s', (what) => {
    const { peer, device } = initiated(5);
    const own = device.keys();
    if (what === 'Complete') device.receive(peer.complete({}));
    else device.node.network.pass(10_001);
    const last = device.keys().at(-1)!;
    vi.restoreAllMocks();
    expect(own.length).toBeGreaterThan(0);
    expect(last).toEqual(new Uint8Array(32));
  });
});

describe('an initiator', () => {
  it('honours one Retry', () => {
    const { network, client, device } = pair(6);
    network.tap = () => false;
    dial(client, device);
    network.pass(0);
    const initiates = () => network.sent.map(({ bytes }) => decodeInitiate(bytes)!);
    const { source } = initiates()[0]!;
    for (const fill of [1, 2]) {
      const retry = encodeRetry({ destination: source, token: new Uint8Array(20).fill(fill) });
      client.endpoint.receive(retry, client.path(device), network.now);
      network.pass(0);
    }
    expect(initiates().map(({ token }) => token)).toEqual([new Uint8Array(0), new Uint8Array(20).fill(1)]);
    expect(client.endpoint.stats.badHandshake).toBe(1);
  });
});

/** Returns a device that received an Initiate from a peer, and the peer with the device's Respond. */
function initiated(seed: number) {
  const { network, client, device } = pair(seed);
  const keys = vi.spyOn(device.config.core.aead, 'seal');
  const opened = vi.spyOn(device.config.core.aead, 'open');
  const crypto = nativeHost(seed);
  const source = crypto.randomBytes(8);
  const staticKey = crypto.generateKey();
  const ephemeral = crypto.generateKey();
  const handshake = () =>
    new HandshakeState({ pattern: XX, initiator: true, prologue: prologue(1, 1, NAME), crypto, aead: nobleAead, staticKey, ephemeral });
  const first = handshake();
  const message = first.writeMessage(new Uint8Array(0));
  const receive = (packet: Uint8Array) => {
    device.endpoint.receive(packet, device.path(client), network.now);
    device.service(network.now);
  };
  receive(padded(encodeInitiate(crypto, mac1Key(crypto, NAME), { version: 1, suite: 1, source, token: new Uint8Array(0), message })));
  const respond = decodeRespond(sentBy({ network, client, device }, device))!;
  first.readMessage(respond.message);

  /** The peer after its first message; `state` has read the Respond. */
  const peerOf = (state: HandshakeState) => ({
    complete: ({ id = source, versions = Uint8Array.of(1), suites = Uint8Array.of(1) }) => {
      const offer = { parameters, flowParts: 0, id, resetToken: new Uint8Array(16), versions, suites };
      return encodeComplete({ destination: respond.source, message: state.writeMessage(encodeInitiatorOffer(offer)) });
    },
    /** Makes a packet of that length for the device's id. */
    data: (length: number) => {
      const packet = new Uint8Array(length);
      packet[0] = 0xc0;
      packet.set(respond.source, 1);
      return packet;
    },
    /** Returns the same peer as before its Complete, since a message can be written only once. */
    again: () => {
      const state = handshake();
      state.writeMessage(new Uint8Array(0));
      state.readMessage(respond.message);
      return peerOf(state);
    },
  });
  const allKeys = () => [...keys.mock.calls, ...opened.mock.calls].map(([key]) => key);
  return { peer: peerOf(first), device: { node: device, receive, keys: allKeys } };
}

function sentBy({ network }: EndpointPair, node: PolledEndpoint): Uint8Array {
  return network.sent.filter(({ from }) => from === node).at(-1)!.bytes;
}
