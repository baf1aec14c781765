/**
 * The device's side of the rendezvous and its checks: malformed, replayed or excessive requests, forbidden candidates,
 * STUN of attackers.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import { DeviceEnd } from '../../../bench/nat/signalling.ts';
import { silentLog } from '../../../platform/environment.ts';
import type { CoapReply, RoutedRequest } from '../../../protocol/coap/index.ts';
import {
  type Candidate,
  ConnectionPath,
  decodeRendezvousState,
  encodeRendezvousOffer,
  encodeRendezvousUpdate,
  type RendezvousOffer,
} from '../../../protocol/control/index.ts';
import { deviceLimits, HostBudget, type PeerClass, ROUND_LIFETIME } from '../../../protocol/rendezvous/index.ts';
import { encodeBinding, encodeCheck } from '../../../protocol/stun/index.ts';
import { Gatherer, RendezvousResponder, type ServingSession, StunDispatcher } from '../../../runtime/rendezvous/index.ts';
import { Simulation } from '../../../testing/index.ts';

const PORT = 5_600;
const OWN = '198.51.100.2';
const PEER = '198.51.100.1';
const STRANGER = '203.0.113.66';

interface Trust {
  readonly peer?: PeerClass;
  readonly isWelcome?: boolean;
}

/** A device's host with everything that answers clients, and its sent packets. */
function deviceOf({ peer = 'known', isWelcome = true }: Trust = {}) {
  const simulation = new Simulation();
  const host = new PlainHost(simulation.host('device', { addresses: [`${OWN}/24`, '2001:db8::2/64'] }), PORT);
  const dispatcher = new StunDispatcher(host);
  const gatherer = new Gatherer({ host, dispatcher });
  const sent: { readonly to: string; readonly data: Uint8Array }[] = [];
  simulation.onPacket = ({ from, destination, data }) => {
    if (from === 'device') sent.push({ to: `${destination.address}:${destination.port}`, data });
    return undefined;
  };
  const responder = new RendezvousResponder<ServingSession>({
    end: { host, dispatcher, gatherer },
    budget: new HostBudget(deviceLimits),
    hardNat: true,
    trustOf: () => ({ peer, isWelcome }),
    station: () => null,
    peerAddress: () => ({ address: PEER, port: 1 }),
  });
  const notified: CoapReply[] = [];
  const session = () => new DeviceEnd(silentLog, (_, reply) => notified.push(reply));
  return { simulation, host, dispatcher, gatherer, responder, sent, notified, session };
}

const candidate = (address: string, port = 5_000): Candidate => ({ address, port, type: 'reflexive' });
const offerOf = (round: number, candidates: readonly Candidate[] = [candidate(PEER)]): RendezvousOffer => ({
  round,
  tag: new Uint8Array(8).fill(3),
  key: new Uint8Array(16).fill(3),
  number: 1,
  candidates,
  nat: { mapping: 'independent' },
});

let exchanges = 0;
function requestOf(context: DeviceEnd, payload: Uint8Array, observe = true): RoutedRequest<ServingSession> {
  const exchange = ++exchanges;
  if (observe) context.observed.add(exchange);
  const path = ConnectionPath.RENDEZVOUS;
  return { exchange, method: 'POST', path, payload, observe, segments: [], query: [], parameters: {}, context };
}

const begin = ({ responder }: ReturnType<typeof deviceOf>, session: DeviceEnd, offer: RendezvousOffer, observe = true): CoapReply =>
  responder.begin(requestOf(session, encodeRendezvousOffer(offer), observe));
const update = ({ responder }: ReturnType<typeof deviceOf>, session: DeviceEnd, round: number, number = 2, spray = false): CoapReply =>
  responder.update(
    requestOf(session, encodeRendezvousUpdate({ round, number, candidates: [], opened: 0, ...(spray && { spray }) }), false),
  );

let device: ReturnType<typeof deviceOf>;
beforeEach(() => {
  device = deviceOf();
});

describe('a round', () => {
  it('is answered with a list and keys of its own, and ends when the client cancels the observation', async () => {
    const session = device.session();
    const reply = begin(device, session, offerOf(1));
    const state = decodeRendezvousState(reply.payload!);
    expect([reply.status, reply.observe, state.candidates.map(({ address }) => address)]).toEqual([201, true, [OWN, '2001:db8::2']]);
    expect(device.responder.isOngoing(session)).toBe(true);
    await device.simulation.run(200);
    expect(decodeRendezvousState(device.notified.at(-1)!.payload!).opened).toBe(1);
    for (const exchange of session.observed) session.cancel(exchange);
    expect(device.responder.isOngoing(session)).toBe(false);
    const before = device.sent.length;
    await device.simulation.run(10_000);
    expect(device.sent.length).toBe(before);
  });

  it('ends after 30 s, and its results stay', async () => {
    const session = device.session();
    begin(device, session, offerOf(1));
    await device.simulation.run(ROUND_LIFETIME - 1);
    expect(device.responder.isOngoing(session)).toBe(true);
    await device.simulation.run(2);
    expect([device.responder.isOngoing(session), device.responder.facts(session)?.remoteCandidates]).toEqual([false, 1]);
  });

  it('of a session that has become direct keeps its results for a minute', async () => {
    const device = deviceOf();
    const session = Object.assign(device.session(), { paths: { type: 'DIRECT' as const, all: [], rtt: null } });
    begin(device, session, offerOf(1));
    device.responder.end(session);
    await device.simulation.run(59_000);
    expect(device.responder.facts(session)?.remoteCandidates).toBe(1);
    await device.simulation.run(2_000);
    expect(device.responder.facts(session)).toBeNull();
  });

  it('has other keys than the previous one', () => {
    const session = device.session();
    const keys = [1, 2].map((round) => decodeRendezvousState(begin(device, session, offerOf(round)).payload!));
    expect([keys[0]!.key, keys[0]!.tag]).not.toEqual([keys[1]!.key, keys[1]!.tag]);
  });

  it.each([
    ['the same', 5],
    ['one before it', 4],
    ['round 0', 0],
  ])('that is replayed (%s) is refused, counted, and leaves the current one alone', (_, round) => {
    const session = device.session();
    begin(device, session, offerOf(5));
    expect(begin(device, session, offerOf(round)).status).toBe(400);
    expect([device.responder.stats.replayed, device.responder.isOngoing(session)]).toEqual([1, true]);
    device.responder.end(session);
    expect(begin(device, session, offerOf(round)).status).toBe(400);
  });

  it('without an observation is refused, and an unauthorized key learns nothing', () => {
    expect(begin(device, device.session(), offerOf(1), false).status).toBe(400);
    const closed = deviceOf({ isWelcome: false });
    expect(begin(closed, closed.session(), offerOf(1))).toMatchObject({ status: 403 });
  });

  it('ends with the responder, which begins no other one', async () => {
    const [session, other] = [device.session(), device.session()];
    begin(device, session, offerOf(1));
    device.responder.close();
    const before = device.sent.length;
    expect([device.responder.isOngoing(session), begin(device, other, offerOf(1)).status]).toEqual([false, 403]);
    expect([device.responder.isOngoing(other), update(device, session, 1).status]).toEqual([false, 404]);
    await device.simulation.run(10_000);
    expect(device.sent.length).toBe(before);
  });

  it('with an unknown client offers no address of an interface', () => {
    const device = deviceOf({ peer: 'stranger' });
    expect(decodeRendezvousState(begin(device, device.session(), offerOf(1)).payload!).candidates).toEqual([]);
  });

  it('has a slot for three of known peers, one for an unknown client; further ones receive the time to ask again', () => {
    for (const [peer, places] of [
      ['known', 3],
      ['stranger', 1],
    ] as const) {
      const device = deviceOf({ peer });
      const sessions = Array.from({ length: places + 1 }, () => device.session());
      expect(sessions.map((session) => begin(device, session, offerOf(1)).status)).toEqual([...Array(places).fill(201), 429]);
      expect(device.responder.stats.busy).toBe(1);
      device.responder.end(sessions[0]!);
      expect(begin(device, sessions[places]!, offerOf(2)).status).toBe(201);
    }
  });
});

describe('an update', () => {
  it('is for the current round alone', () => {
    const session = device.session();
    expect(update(device, session, 1).status).toBe(404);
    begin(device, session, offerOf(2));
    expect([1, 2, 3].map((round) => update(device, session, round).status)).toEqual([404, 204, 404]);
    expect(update(device, device.session(), 2).status).toBe(404);
  });

  it('that asks for the sprayed stage where it does not help is refused', () => {
    const session = device.session();
    begin(device, session, offerOf(1));
    expect(update(device, session, 1, 2, true).status).toBe(403);
  });
});

it('malformed bodies are refused as PARSE, and a current round continues', () => {
  const session = device.session();
  begin(device, session, offerOf(1));
  for (const payload of [new Uint8Array(0), new Uint8Array(2_000), Uint8Array.of(0xa1, 0xff)]) {
    for (const serve of ['begin', 'update'] as const)
      expect(() => device.responder[serve](requestOf(session, payload))).toThrow(expect.objectContaining({ code: 'PARSE' }));
  }
  expect(device.responder.isOngoing(session)).toBe(true);
});

describe('candidates', () => {
  const { gatherer } = deviceOf();

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback of IPv6', '::1'],
    ['multicast', '224.0.0.251'],
    ['multicast of IPv6', 'ff02::fb'],
    ['broadcast', '255.255.255.255'],
    ['unspecified', '0.0.0.0'],
    ['unspecified of IPv6', '::'],
    ['link-local with a zone', 'fe80::1%eth0'],
    ['link-local', '169.254.1.1'],
    ['a name', 'localhost'],
    ['nothing', ''],
  ])('that are %s are never used', (_, address) => {
    expect(gatherer.isUsable(candidate(address))).toBe(false);
  });

  it('are near in one of our networks and on a link', () => {
    const near = ['198.51.100.77', '2001:db8::77', '169.254.1.1', 'fe80::1%eth0'];
    expect([...near, STRANGER, '2001:db8:1::1', 'localhost'].filter((address) => gatherer.isNear(address))).toEqual(near);
  });

  it('that are this very socket are not used, another port of this host is', () => {
    expect([OWN, '2001:db8::2'].map((address) => gatherer.isUsable(candidate(address, PORT)))).toEqual([false, false]);
    expect(gatherer.isUsable(candidate(OWN, PORT + 1))).toBe(true);
  });

  it('that name a victim cause four packets a round to it, and twelve a minute of all rounds', async () => {
    const session = device.session();
    const victims = (round: number) => Array.from({ length: 8 }, (_, i) => candidate(STRANGER, 1_000 * round + i));
    for (let round = 1; round <= 5; round++) {
      begin(device, session, offerOf(round, victims(round)));
      await device.simulation.run(2_000);
    }
    // Of all rounds of known peers: twelve at once, and the same number again within a minute.
    const sent = device.sent.filter(({ to }) => to.startsWith(STRANGER)).length;
    expect(sent).toBeGreaterThanOrEqual(12);
    expect(sent).toBeLessThanOrEqual(12 + 2);
    const once = deviceOf();
    begin(once, once.session(), offerOf(1, victims(1)));
    await once.simulation.run(30_000);
    expect(once.sent.filter(({ to }) => to.startsWith(STRANGER)).length).toBe(4);
  });
});

describe('STUN of attackers', () => {
  const crypto = deviceOf().host.environment.crypto;

  it.each<[string, () => Uint8Array]>([
    ['plain Binding', () => encodeBinding(crypto.randomBytes(12))],
    ['a check for an unknown tag', () => encodeCheck(crypto.randomBytes(8), crypto.randomBytes(16), crypto.randomBytes(12), crypto)],
    ['garbage that begins as STUN', () => new Uint8Array(76)],
    ['one byte', () => Uint8Array.of(1)],
  ])('gets no answer: %s', async (_, datagram) => {
    begin(device, device.session(), offerOf(1, []));
    for (let i = 0; i < 100; i++) device.simulation.inject({ address: STRANGER, port: 7 }, { address: OWN, port: PORT }, datagram());
    await device.simulation.run(1_000);
    expect([device.sent, device.dispatcher.stats]).toEqual([[], { checks: 0, unclaimed: 100 }]);
  });

  it('with the tag of a round and without its key gets none either, and makes no pair', async () => {
    const session = device.session();
    const { tag } = decodeRendezvousState(begin(device, session, offerOf(1, [])).payload!);
    const forged = encodeCheck(tag, crypto.randomBytes(16), crypto.randomBytes(12), crypto);
    for (let i = 0; i < 100; i++) device.simulation.inject({ address: STRANGER, port: 7 }, { address: OWN, port: PORT }, forged);
    await device.simulation.run(1_000);
    expect([device.sent, device.responder.facts(session)?.pairs]).toEqual([[], []]);
  });

  it('that is a replayed check of the peer is answered to its source, in its own size, and causes no migration', async () => {
    const { tag, key } = decodeRendezvousState(begin(device, device.session(), offerOf(1, [])).payload!);
    const check = encodeCheck(tag, key, crypto.randomBytes(12), crypto);
    for (let i = 0; i < 50; i++) device.simulation.inject({ address: STRANGER, port: 7 }, { address: OWN, port: PORT }, check);
    await device.simulation.run(20_000);
    expect(device.sent.filter(({ data }) => data[0] === 1).length).toBe(50);
    expect(device.sent.every(({ to, data }) => to === `${STRANGER}:7` && data.length === check.length)).toBe(true);
    // An answer each, and our own checks within the budget of an address that has answered none.
    expect(device.sent.length).toBeLessThanOrEqual(50 + 6);
  });
});
