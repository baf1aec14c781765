/** The verbs of the rendezvous, in the driver of test/protocol/verbs.test.ts. */
import { describe, expect, test } from 'vitest';
import { MAIN_SOCKET, Sampler } from '../../../protocol/rendezvous/index.ts';
import { encodeBindingAnswer, tagOfCheck } from '../../../protocol/stun/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import { Log, VirtualDriver } from '../../support/verbs.ts';
import { at, candidate, complete, End, OURS, PEER, peerKeys } from './ends.ts';

const LATENCY = 20;
const never = Number.POSITIVE_INFINITY;

describe('the rendezvous', () => {
  test('the sampler asks three times, and then reports that it is done', () => {
    const driver = new VirtualDriver();
    const server = at('203.0.113.1', 4_501);
    const sampler = new Sampler({ crypto: nativeHost(1), servers: [server, at('203.0.113.2', 1)], port: 5_000, known: null }, 0);
    const [sent, events] = [new Log<string>(), new Log<string>()];
    driver.add(sampler, {
      output: ({ to, datagram, socket }, now) => {
        sent.note(to.address, now);
        // The second server is silent.
        if (to === server)
          driver.at(now + LATENCY, () => void sampler.receive(encodeBindingAnswer(datagram, at(OURS, 7_000)), to, socket, driver.now));
      },
      event: ({ kind }, now) => events.note(kind, now),
    });
    driver.run(100_000);
    expect(sent.entries).toEqual([[0, server.address], ...[0, 150, 350].map((time) => [time, '203.0.113.2'])]);
    expect(events.entries).toEqual([[750, 'done']]);
    expect(sampler.nextTimeout()).toBe(never);
  });

  test('an agent whose peer has gone silent gives up once the peer can no longer find it', () => {
    const driver = new VirtualDriver();
    const end = new End();
    const [sent, events] = [new Log<number | undefined>(), new Log<string>()];
    driver.add(end, { output: ({ hopLimit }, now) => sent.note(hopLimit, now), event: ({ kind }, now) => events.note(kind, now) });
    end.agent.setLocal(complete(), 0);
    const list = { number: 1, candidates: [candidate(PEER, 1)], nat: { mapping: 'independent' }, opened: 0 } as const;
    driver.at(50, () => end.agent.setRemote({ ...peerKeys, ...list }, 50));
    driver.run(100_000);
    const begin = 50 + 20 + 10 + 1_000;
    const checks = [0, 50, 150, 350, 750, 1_550, 2_350, 3_150, 3_950, 4_750].map((time) => [begin + time, undefined]);
    expect(sent.entries).toEqual([[50, 2], [70, 4], [80, 7], ...checks]);
    expect(events.entries).toEqual([
      [0, 'changed'],
      [80, 'changed'],
      // The device may still find us for 8 s.
      [8_000, 'exhausted'],
    ]);
    expect(end.nextTimeout()).toBe(never);
  });

  test('two agents, one behind a random NAT: openers, checks, and a pair from the sprayed stage', { tags: ['slow'] }, () => {
    const driver = new VirtualDriver();
    const reflexive = (address: string, port: number) => [candidate(address, port)];
    const client = new End({ trusted: [PEER], seed: 1 });
    const device = new End({ role: 'device', trusted: [OURS], seed: 2 });
    const answered = new Log<string>();
    const ends = { client: { end: client, other: device, address: OURS }, device: { end: device, other: client, address: PEER } } as const;
    // The device's NAT lets in only packets for the mapping of its 200th socket, and hides its main socket.
    const HIDDEN = 200;
    for (const [name, { end, other, address }] of Object.entries(ends)) {
      driver.add(end, {
        output: ({ socket, to, datagram, hopLimit }, now) => {
          const isOut = hopLimit === undefined && (name === 'client' ? to.port % 16 === 0 : socket === HIDDEN);
          if (!isOut) return;
          const from = name === 'client' ? at(address, 1_000) : at(address, 16);
          const atSocket = name === 'client' ? HIDDEN : MAIN_SOCKET;
          driver.at(now + LATENCY, () => {
            const answer = tagOfCheck(datagram) === null ? null : other.agent.round.receiveCheck(datagram, from, atSocket, driver.now);
            if (answer !== null) driver.at(driver.now + LATENCY, () => void end.agent.receiveAnswer(answer, to, socket, driver.now));
          });
        },
        event: (event, now) => {
          if (event.kind === 'answered') answered.note(name, now);
          else if (event.kind === 'sockets') driver.at(now + 1, () => end.agent.socketsOpened(256, driver.now));
          else if (event.kind === 'changed') {
            const { spray = false, ...view } = end.agent.view(now);
            driver.at(now + 2 * LATENCY, () => {
              other.agent.setRemote({ tag: end.keys.tag, key: end.keys.key, ...view }, driver.now);
              if (!spray) return;
              const granted = other.agent.spray(driver.now);
              driver.at(driver.now + 2 * LATENCY, () => end.agent.sprayGranted(granted, driver.now));
            });
          }
        },
      });
    }
    client.agent.setLocal(complete(reflexive(OURS, 1_000), { mapping: 'independent' }), 0);
    device.agent.setLocal(complete(reflexive(PEER, 2_001), { mapping: 'random' }), 0);
    driver.run(29_000);
    const names = new Set(answered.entries.map(([, name]) => name));
    expect(names).toEqual(new Set(['client', 'device']));
    expect(answered.entries[0]![0]).toBeGreaterThan(1_000);
  });
});
