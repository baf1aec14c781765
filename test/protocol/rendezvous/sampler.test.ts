/** Samples from the station's STUN ports: which requests are sent when, and which answers count. */
import { describe, expect, test } from 'vitest';
import type { SocketAddress } from '../../../protocol/control/index.ts';
import { MAIN_SOCKET, type RoundPacket, Sampler } from '../../../protocol/rendezvous/index.ts';
import { answerPort, encodeBindingAnswer } from '../../../protocol/stun/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import { at, OURS } from './ends.ts';

const SERVER = at('203.0.113.1', 4_501);
const SECOND = at('203.0.113.2', 4_502);
const STATION = at('203.0.113.1', 4_500);
const PORT = 50_000;

function samplerOf({ servers = [SERVER], known = null as SocketAddress | null } = {}): Sampler {
  const mapped = known === null ? null : { station: STATION, mapped: known };
  return new Sampler({ crypto: nativeHost(1), servers, port: PORT, known: mapped }, 0);
}

/** Takes all packets that may leave now. */
function packets(sampler: Sampler, now: number): RoundPacket[] {
  sampler.handleTimeout(now);
  const sent: RoundPacket[] = [];
  for (let packet = sampler.transmit(now); packet !== null; packet = sampler.transmit(now)) sent.push(packet);
  return sent;
}

/** Delivers the server's answer to a packet. */
function answer(
  sampler: Sampler,
  packet: RoundPacket,
  mapped: SocketAddress,
  now: number,
  from = packet.to,
  socket = packet.socket,
): boolean {
  return sampler.receive(encodeBindingAnswer(packet.datagram, mapped), from, socket, now);
}

const events = (sampler: Sampler): unknown[] => {
  const all: unknown[] = [];
  for (let event = sampler.nextEvent(); event !== null; event = sampler.nextEvent()) all.push(event);
  return all;
};

describe('the main socket', () => {
  test('asks each server once, and is done if they observed the same', () => {
    const sampler = samplerOf({ servers: [SERVER, SECOND] });
    const sent = packets(sampler, 0);
    expect(sent.map(({ to, socket }) => [to, socket])).toEqual([
      [SERVER, MAIN_SOCKET],
      [SECOND, MAIN_SOCKET],
    ]);
    expect(sent.every(({ datagram }) => answerPort(datagram, 7) === 7)).toBe(true);
    for (const packet of sent) answer(sampler, packet, at(OURS, 7_000), 50);
    expect([events(sampler), sampler.isDone, sampler.nextTimeout()]).toEqual([[{ kind: 'done' }], true, Number.POSITIVE_INFINITY]);
    expect([sampler.reflexive, sampler.report([], 50), sampler.isSilent]).toEqual([[at(OURS, 7_000)], { mapping: 'independent' }, false]);
    expect(sampler.answers).toEqual([
      { ...SERVER, mapped: at(OURS, 7_000) },
      { ...SECOND, mapped: at(OURS, 7_000) },
    ]);
  });

  test('needs only one server if the station itself has reported the address', () => {
    const sampler = samplerOf({ known: at(OURS, 7_000) });
    answer(sampler, packets(sampler, 0)[0]!, at(OURS, 7_000), 50);
    expect([sampler.isDone, sampler.report([], 50).mapping]).toEqual([true, 'independent']);
  });

  test('is observed unchanged without a NAT', () => {
    const sampler = samplerOf({ known: at(OURS, PORT) });
    answer(sampler, packets(sampler, 0)[0]!, at(OURS, PORT), 50);
    expect(sampler.report([OURS], 50)).toEqual({ mapping: 'none' });
  });

  test('asks again after 150 and 350 ms, and gives up after 750: the port is silent', () => {
    const sampler = samplerOf();
    const times: number[] = [];
    for (let now = 0; now < 10_000; now = sampler.nextTimeout()) for (const _ of packets(sampler, now)) times.push(now);
    expect(times).toEqual([0, 150, 350]);
    expect([events(sampler), sampler.isSilent, sampler.report([], 800)]).toEqual([[{ kind: 'done' }], true, { mapping: 'unknown' }]);
    expect(sampler.answers).toEqual([{ ...SERVER, mapped: null }]);
  });

  test('is silent also if only the station has reported an address, and done at once without a server', () => {
    const sampler = samplerOf({ servers: [], known: at(OURS, 7_000) });
    expect([sampler.isSilent, sampler.isDone, events(sampler)]).toEqual([true, true, [{ kind: 'done' }]]);
  });
});

describe('when two servers observed different ports', () => {
  /** Plays ports of the main socket and of three further ones, 20 ms apart. @returns the report at 200 ms */
  function sampled(ports: readonly number[], opened = 3) {
    const sampler = samplerOf({ known: at(OURS, 7_000) });
    answer(sampler, packets(sampler, 0)[0]!, at(OURS, ports[0]!), 50);
    expect(events(sampler)).toEqual([{ kind: 'station' }]);
    sampler.stationAnswered(at(OURS, 7_000), 60);
    expect(events(sampler)).toEqual([{ kind: 'sockets', count: 3 }]);
    expect([packets(sampler, 60), sampler.isDone]).toEqual([[], false]);
    sampler.socketsOpened([50_001, 50_002, 50_003].slice(0, opened), 60);
    const probes = packets(sampler, 60);
    expect(probes.map(({ socket, to }) => [socket, to])).toEqual([1, 2, 3].slice(0, opened).map((socket) => [socket, SERVER]));
    for (const [i, probe] of probes.entries()) answer(sampler, probe, at(OURS, ports[i + 1]!), 110);
    return { sampler, report: sampler.report([], 200) };
  }

  test('three further sockets reveal a sequence, with the last port and its age', () => {
    const { sampler, report } = sampled([8_000, 8_002, 8_003, 8_005]);
    expect([sampler.isDone, report]).toEqual([true, { mapping: 'sequential', last: 8_005, stride: 1, age: 140 }]);
  });

  test('they do so with answers in another order, or one only to the repeated request', () => {
    for (const late of [0, 1, 2]) {
      const sampler = samplerOf({ known: at(OURS, 7_000) });
      answer(sampler, packets(sampler, 0)[0]!, at(OURS, 8_000), 50);
      sampler.stationAnswered(null, 60);
      sampler.socketsOpened([50_001, 50_002, 50_003], 60);
      const probes = packets(sampler, 60);
      const port = (probe: RoundPacket): number => 8_000 + probe.socket;
      for (const probe of probes.filter((_, i) => i !== late).toReversed()) answer(sampler, probe, at(OURS, port(probe)), 110);
      const [again] = packets(sampler, 210);
      expect(again!.socket).toBe(late + 1);
      answer(sampler, again!, at(OURS, port(again!)), 260);
      expect(sampler.report([], 260)).toEqual({ mapping: 'sequential', last: 8_003, stride: 1, age: 200 });
    }
  });

  test('they reveal random ports', () => {
    expect(sampled([8_000, 61_234, 2_345, 40_000]).report).toEqual({ mapping: 'random' });
  });

  test('the result is random if no socket can be opened', () => {
    const { sampler, report } = sampled([8_000], 0);
    expect([sampler.isDone, report]).toEqual([true, { mapping: 'random' }]);
  });

  test('unrequested sockets and reports of the station change nothing', () => {
    const sampler = samplerOf({ known: at(OURS, 7_000) });
    sampler.socketsOpened([50_001], 0);
    sampler.stationAnswered(at(OURS, 1), 0);
    answer(sampler, packets(sampler, 0)[0]!, at(OURS, 7_000), 50);
    expect([sampler.isDone, sampler.report([], 50), packets(sampler, 50)]).toEqual([true, { mapping: 'independent' }, []]);
  });
});

describe('when STUN observes another address than the station did', () => {
  const MOVED = '198.51.100.99';

  test.each([
    ['port', at(OURS, 8_000)],
    ['address', at(MOVED, 7_000)],
  ])('with another %s, the station is asked again, and the mapping is independent if it observes the same now', (_, now) => {
    const sampler = samplerOf({ known: at(OURS, 7_000) });
    answer(sampler, packets(sampler, 0)[0]!, now, 50);
    expect([events(sampler), sampler.isDone, packets(sampler, 60)]).toEqual([[{ kind: 'station' }], false, []]);
    sampler.stationAnswered(now, 90);
    expect([events(sampler), sampler.report([], 90), sampler.reflexive]).toEqual([[{ kind: 'done' }], { mapping: 'independent' }, [now]]);
    // The station is asked only once.
    sampler.stationAnswered(at(OURS, 9), 91);
    expect(sampler.reflexive).toEqual([now]);
  });

  test('and two STUN ports differ, the station is asked once, and then the further sockets', () => {
    const sampler = samplerOf({ servers: [SERVER, SECOND], known: at(OURS, 7_000) });
    for (const [i, packet] of packets(sampler, 0).entries()) answer(sampler, packet, at(OURS, 8_000 + i), 50);
    expect(events(sampler)).toEqual([{ kind: 'station' }]);
    sampler.stationAnswered(null, 90);
    expect([events(sampler), sampler.reflexive.map(({ port }) => port)]).toEqual([[{ kind: 'sockets', count: 3 }], [7_000, 8_000, 8_001]]);
  });
});

describe('an answer', () => {
  test.each<[string, SocketAddress, number]>([
    ['from another port', at(SERVER.address, 1), MAIN_SOCKET],
    ['from another address', at('203.0.113.9', SERVER.port), MAIN_SOCKET],
    ['at another socket', SERVER, 1],
  ])('%s is ignored', (_, from, socket) => {
    const sampler = samplerOf();
    const [packet] = packets(sampler, 0);
    expect(answer(sampler, packet!, at('203.0.113.66', 666), 10, from, socket)).toBe(true);
    expect([sampler.reflexive, sampler.isDone]).toEqual([[], false]);
    answer(sampler, packet!, at(OURS, 7_000), 20);
    expect(sampler.reflexive).toEqual([at(OURS, 7_000)]);
  });

  test('counts once', () => {
    const sampler = samplerOf();
    const [packet] = packets(sampler, 0);
    answer(sampler, packet!, at(OURS, 7_000), 10);
    expect([answer(sampler, packet!, at(OURS, 8_000), 20), sampler.reflexive]).toEqual([true, [at(OURS, 7_000)]]);
  });

  test('to no request of the sampler is left to others, as is garbage', () => {
    const [sampler, other] = [samplerOf(), new Sampler({ crypto: nativeHost(2), servers: [SERVER], port: PORT, known: null }, 0)];
    const [packet] = packets(other, 0);
    expect(answer(sampler, packet!, at(OURS, 1), 10)).toBe(false);
    for (const garbage of [new Uint8Array(0), new Uint8Array(32), packet!.datagram])
      expect(sampler.receive(garbage, SERVER, MAIN_SOCKET, 10)).toBe(false);
  });
});

test('the sampler asks three servers at most, however many the station names', () => {
  const sampler = samplerOf({ servers: Array.from({ length: 100 }, (_, i) => at('203.0.113.1', 1 + i)) });
  expect(packets(sampler, 0).length).toBe(3);
});
