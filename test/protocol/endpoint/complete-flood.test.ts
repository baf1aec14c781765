/**
 * Each invalid Complete costs a Diffie-Hellman operation, so few are processed. The valid one and those of other
 * handshakes get through.
 */
import { beforeEach, expect, it } from 'vitest';
import { prologue } from '../../../protocol/endpoint/negotiation.ts';
import { encodeInitiatorOffer } from '../../../protocol/endpoint/parameters.ts';
import { HandshakeState, XX } from '../../../protocol/noise/index.ts';
import { decodeRespond, encodeComplete, encodeInitiate, mac1Key, padded } from '../../../protocol/packet/index.ts';
import { nativeHost, nobleAead } from '../../support/crypto.ts';
import { dial, type EndpointFixture, type PolledEndpoint, pair, parameters } from '../../support/fixture/endpoints.ts';

const NAME = 'device:p.d';
const crypto = nativeHost(77);

let network: EndpointFixture;
let client: PolledEndpoint;
let device: PolledEndpoint;
beforeEach(() => {
  ({ network, client, device } = pair(7));
});

/** Runs a handshake up to the Respond. Returns what makes a valid or damaged Complete of a payload. */
function begun(): (damaged: boolean) => Uint8Array {
  const source = crypto.randomBytes(8);
  const handshake = new HandshakeState({
    pattern: XX,
    initiator: true,
    prologue: prologue(1, 1, NAME),
    crypto,
    aead: nobleAead,
    staticKey: crypto.generateKey(),
  });
  const initiate = { version: 1, suite: 1, source, token: new Uint8Array(0), message: handshake.writeMessage(new Uint8Array(0)) };
  device.endpoint.receive(padded(encodeInitiate(crypto, mac1Key(crypto, NAME), initiate)), device.path(client), network.now);
  const batch = device.endpoint.transmit(network.now)!;
  const respond = decodeRespond(batch.buffer.slice(batch.offsets[0], batch.offsets[0]! + batch.lengths[0]!))!;
  handshake.readMessage(respond.message);
  const offer = {
    parameters,
    flowParts: 0,
    id: source,
    resetToken: new Uint8Array(16),
    versions: Uint8Array.of(1),
    suites: Uint8Array.of(1),
  };
  const message = handshake.writeMessage(encodeInitiatorOffer(offer));
  return (damaged) => {
    const bytes = message.slice();
    if (damaged) bytes[bytes.length - 1]! ^= 1;
    return encodeComplete({ destination: respond.source, message: bytes });
  };
}

const send = (complete: Uint8Array): void => device.endpoint.receive(complete, device.path(client), network.now);
const looked = (): number => device.endpoint.stats.badHandshake;

it('a flood of invalid Completes is processed five times a second', () => {
  const complete = begun();
  for (let index = 0; index < 100; index++) send(complete(true));
  expect([looked(), device.endpoint.stats.limited]).toEqual([6, 94]);
  network.pass(1_000);
  for (let index = 0; index < 100; index++) send(complete(true));
  expect(looked()).toBe(11);
});

it('the valid Complete is accepted a moment later', { tags: ['slow'] }, () => {
  const complete = begun();
  for (let index = 0; index < 100; index++) send(complete(true));
  send(complete(false));
  expect(device.accepted).toHaveLength(0);
  network.pass(300);
  send(complete(false));
  network.pass(10);
  expect(device.accepted).toHaveLength(1);
});

it('another handshake is not affected, not even from the same address', () => {
  const [flood, honest] = [begun(), begun()];
  for (let index = 0; index < 100; index++) send(flood(true));
  send(honest(false));
  network.pass(10);
  expect(device.accepted).toHaveLength(1);
  const connection = dial(client, device);
  expect(network.run(() => connection.state === 'open')).toBe(true);
});
