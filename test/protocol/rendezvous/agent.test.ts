/** Agents of both ends: when a round is given up, and the sprayed stage from both sides. */
import { describe, expect, test } from 'vitest';
import type { NatMapping, NatReport } from '../../../protocol/control/index.ts';
import { MAIN_SOCKET } from '../../../protocol/rendezvous/index.ts';
import { SPRAY_PORTS, SPRAY_SOCKETS } from '../../../protocol/rendezvous/spray.ts';
import { at, candidate, complete, End, type EndOptions, PEER, peerList } from './ends.ts';

const nat = (mapping: NatMapping): NatReport => ({ mapping });
const independent = nat('independent');
const random = nat('random');
const sequential: NatReport = { mapping: 'sequential', last: 5_000, stride: 1, age: 20 };

/** Begins a round in which both ends have opened at 20 ms. */
function begun(ours: NatReport, theirs: NatReport, options: EndOptions = {}): End {
  const end = new End(options);
  end.agent.setLocal(complete(undefined, ours), 0);
  end.agent.setRemote(peerList([candidate(PEER, 5_000)], { nat: theirs }), 0);
  return end;
}

const asksFor = (end: End): number | undefined => end.events.find((event) => event.kind === 'sockets')?.count;
const spraying = (end: End, now: number): boolean => end.agent.view(now).spray === true;

describe('a client gives up', () => {
  test('when the wait for its last check is over', () => {
    const end = begun(independent, independent);
    end.run(0, 5_700);
    expect(end.kinds).not.toContain('exhausted');
    end.run(5_700, 5_800);
    expect(end.kinds.filter((kind) => kind === 'exhausted').length).toBe(1);
    expect(end.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  test('1.8 s after both ends opened when ports are predicted', () => {
    const end = begun(sequential, sequential);
    expect(end.agent.isPredicting(0)).toBe(true);
    end.run(0, 1_700);
    expect(end.kinds).not.toContain('exhausted');
    end.run(1_700, 2_000);
    expect(end.kinds).toContain('exhausted');
  });

  test('after 30 s without a list from the device', () => {
    const end = new End();
    end.agent.setLocal(complete(), 0);
    end.run(0, 29_999);
    expect(end.kinds).not.toContain('exhausted');
    end.run(29_999, 30_001);
    expect(end.kinds).toContain('exhausted');
  });

  test('not while a pair has answered, and a device never', () => {
    const end = begun(independent, independent);
    const [, , check] = end.run(0, 30);
    end.answer(check!, 40);
    end.run(40, 60_000);
    expect(end.kinds).not.toContain('exhausted');
    const device = begun(independent, independent, { role: 'device' });
    device.run(0, 60_000);
    expect(device.kinds).not.toContain('exhausted');
  });
});

describe('a client behind an independent NAT, with a device behind a random one', () => {
  test('asks for a spray after 0.6 s, and sprays from 0.4 s after the grant, 100 ports a second, each once', () => {
    const end = begun(independent, random);
    end.run(0, 600);
    expect(spraying(end, 600)).toBe(false);
    end.run(600, 640);
    expect([spraying(end, 640), end.kinds.filter((kind) => kind === 'changed').length]).toEqual([true, 3]);
    end.agent.sprayGranted(true, 700);
    const before = end.run(700, 1_090).filter(({ to }) => to.port !== 5_000);
    expect(before).toEqual([]);
    const sprayed = end.run(1_090, 14_000).filter(({ to }) => to.port !== 5_000);
    expect(sprayed.length).toBeGreaterThan(SPRAY_PORTS - 3);
    expect(new Set(sprayed.map(({ to }) => to.port)).size).toBe(sprayed.length);
    expect(sprayed.every(({ to, socket, hopLimit }) => to.address === PEER && socket === MAIN_SOCKET && hopLimit === undefined)).toBe(true);
    expect(sprayed.at(-1)!.time - sprayed[0]!.time).toBeGreaterThan(10_000);
    // The client waits a second for the last answers.
    expect(end.kinds.at(-1)).toBe('exhausted');
  });

  test('makes a pair when a sprayed check is answered, and checks it at once', () => {
    const end = begun(independent, random);
    end.run(0, 640);
    end.agent.sprayGranted(true, 700);
    const hit = end.run(700, 3_000).at(-1)!;
    expect(end.answer(hit, 3_050)).toBe(true);
    const [check] = end.run(3_050, 3_055).filter(({ to }) => to.port === hit.to.port);
    expect(end.answer(check!, 3_100)).toBe(true);
    end.run(3_100, 3_101);
    expect(end.events.at(-1)).toMatchObject({ kind: 'answered', pair: { remote: hit.to, kind: 'peer-reflexive' } });
  });

  test.each([
    ['another address', { from: at('203.0.113.9', 6_000) }],
    ['another key', { key: new Uint8Array(16).fill(7) }],
  ])('ignores an answer to a sprayed check from %s', (_, wrong) => {
    const end = begun(independent, random);
    end.run(0, 640);
    end.agent.sprayGranted(true, 700);
    const hit = end.run(700, 3_000).at(-1)!;
    const pairs = end.agent.round.checklist.pairs.length;
    expect(end.answer(hit, 3_050, wrong)).toBe(false);
    expect(end.agent.round.checklist.pairs.length).toBe(pairs);
  });

  test('continues with its checks alone when the device refuses', () => {
    const end = begun(independent, random);
    end.run(0, 640);
    end.agent.sprayGranted(false, 700);
    expect([end.agent.isSpraying, spraying(end, 700)]).toEqual([false, false]);
    // The next round may ask again.
    expect(end.budget.acquireSpray(PEER, 'test', 700)).toBe(true);
    expect(end.run(700, 20_000).every(({ to }) => to.port === 5_000)).toBe(true);
    expect(end.kinds.at(-1)).toBe('exhausted');
  });

  test('does not spray when its host may not do so now', () => {
    const end = begun(independent, random);
    end.budget.acquireSpray(PEER, 'of another', 0);
    end.run(0, 6_000);
    expect([spraying(end, 700), end.kinds.at(-1)]).toEqual([false, 'exhausted']);
    // The other's ends 15 s after it began.
    expect([end.agent.sprayFrom, begun(independent, random).agent.sprayFrom]).toEqual([15_000, null]);
  });
});

describe('a client behind a random NAT, with a device behind an independent one', () => {
  test('opens 256 sockets, sends an opener from each, and then asks for a spray', () => {
    const end = begun(random, independent);
    end.run(0, 640);
    expect([asksFor(end), spraying(end, 640)]).toEqual([SPRAY_SOCKETS, false]);
    end.agent.socketsOpened(256, 700);
    const sent = end.run(700, 1_000).filter(({ socket }) => socket !== MAIN_SOCKET);
    expect(sent.map(({ socket }) => socket)).toEqual(Array.from({ length: 256 }, (_, i) => i + 1));
    expect(sent.every(({ to, hopLimit }) => to.address === PEER && to.port === 5_000 && hopLimit === 4)).toBe(true);
    expect(spraying(end, 1_000)).toBe(true);
  });

  test('makes a pair at the socket on which a check of the device arrives', () => {
    const end = begun(random, independent);
    end.run(0, 640);
    end.agent.socketsOpened(256, 700);
    end.run(700, 1_000);
    end.agent.sprayGranted(true, 1_100);
    expect(end.check(at(PEER, 5_000), 2_000, { socket: 77 })).not.toBeNull();
    const [check] = end.run(2_000, 2_015).filter(({ socket }) => socket === 77);
    expect(end.answer(check!, 2_050)).toBe(true);
  });

  test('continues without sockets when none can be opened, and with fewer when there are fewer', () => {
    const none = begun(random, independent);
    none.run(0, 640);
    none.agent.socketsOpened(0, 700);
    expect([none.agent.isSpraying, none.budget.acquireSpray(PEER, 'test', 700)]).toEqual([false, true]);
    none.run(700, 7_000);
    expect(none.kinds.at(-1)).toBe('exhausted');
    const few = begun(random, independent);
    few.run(0, 640);
    few.agent.socketsOpened(3, 700);
    expect(few.run(700, 1_000).filter(({ socket }) => socket !== MAIN_SOCKET).length).toBe(3);
  });
});

test('the first trusted address of a random NAT is sprayed', () => {
  const end = new End();
  const list = [candidate('203.0.113.9', 4_000), candidate(PEER, 5_000, 'host'), candidate('2001:db8::2', 4_000), candidate(PEER, 5_000)];
  end.agent.setLocal(complete(undefined, independent), 0);
  end.agent.setRemote(peerList(list, { nat: random }), 0);
  end.run(0, 900);
  end.agent.sprayGranted(true, 900);
  const sprayed = end.run(900, 3_000).filter(({ to }) => to.port !== 4_000 && to.port !== 5_000);
  expect([sprayed.length > 100, new Set(sprayed.map(({ to }) => to.address))]).toEqual([true, new Set([PEER])]);
});

describe('there is no sprayed stage', () => {
  test.each<[string, NatReport, NatReport, EndOptions]>([
    ['between two random NATs', random, random, {}],
    ['between a random and a sequential one', random, sequential, {}],
    ['between a sequential and a random one', sequential, random, {}],
    ['between two independent ones', independent, independent, {}],
    ['with an unknown one', nat('unknown'), random, {}],
    ['when it is switched off', independent, random, { hardNat: false }],
    ['towards an untrusted address', independent, random, { trusted: [] }],
  ])('%s', (_, ours, theirs, options) => {
    const end = begun(ours, theirs, options);
    const sent = end.run(0, 29_000);
    expect([asksFor(end), sent.some(({ socket, to }) => socket !== MAIN_SOCKET || to.address !== PEER)]).toEqual([undefined, false]);
    expect(sent.filter(({ to, hopLimit }) => to.port !== 5_000 && hopLimit === undefined).length).toBeLessThanOrEqual(32 * 10);
    expect(end.agent.isSpraying).toBe(false);
  });

  test('while a pair has answered', () => {
    const end = begun(independent, random);
    const [, , check] = end.run(0, 30);
    end.answer(check!, 40);
    end.run(40, 10_000);
    expect(end.agent.isSpraying).toBe(false);
  });
});

describe('a device', () => {
  const device = (ours: NatReport, theirs: NatReport, options: EndOptions = {}) => begun(ours, theirs, { role: 'device', ...options });

  test('does not begin the sprayed stage itself', () => {
    const end = device(random, independent);
    end.run(0, 10_000);
    expect([asksFor(end), end.agent.isSpraying, end.agent.view(0).spray]).toEqual([undefined, false, undefined]);
  });

  test('opens sockets on request, once however often it is asked', () => {
    const end = device(random, independent);
    expect([end.agent.spray(1_000), end.agent.spray(1_010), end.agent.spray(1_020)]).toEqual([true, true, true]);
    end.run(1_000, 1_050);
    expect(end.kinds.filter((kind) => kind === 'sockets').length).toBe(1);
  });

  test('sprays at once on request', () => {
    const end = device(independent, random);
    end.run(0, 990);
    expect(end.agent.spray(1_000)).toBe(true);
    expect(end.run(1_000, 2_000).filter(({ to }) => to.port !== 5_000).length).toBeGreaterThan(90);
  });

  test.each<[string, NatReport, NatReport, EndOptions]>([
    ['it does not help', independent, independent, {}],
    ['no port can be guessed', random, random, {}],
    ['it is switched off', random, independent, { hardNat: false }],
    ['the station did not report the address', independent, random, { trusted: ['203.0.113.9'] }],
  ])('refuses a spray when %s, and later, too', (_, ours, theirs, options) => {
    const end = device(ours, theirs, options);
    expect([end.agent.spray(1_000), end.agent.spray(2_000)]).toEqual([false, false]);
    expect(end.run(1_000, 5_000).every(({ to }) => to.port === 5_000)).toBe(true);
  });

  test('does not spray when the client did not name the address that the station reported', () => {
    const end = new End({ role: 'device', trusted: ['203.0.113.9'] });
    end.agent.setLocal(complete(undefined, independent), 0);
    end.agent.setRemote(peerList([candidate(PEER, 5_000)], { nat: random }), 0);
    expect(end.agent.spray(100)).toBe(false);
  });
});

test('predicted ports are opened once, 32 at most, in order, 1 ms apart', () => {
  const end = begun(independent, sequential);
  const openers = end.run(0, 200).filter(({ to, hopLimit }) => hopLimit !== undefined && to.port !== 5_000);
  expect(openers.length).toBe(32);
  expect(openers.every(({ to }) => to.port > 5_000 && to.port < 5_100)).toBe(true);
  end.agent.setRemote(peerList([candidate(PEER, 5_000)], { number: 2, nat: { ...sequential, last: 9_000 } }), 200);
  expect(end.run(200, 400).some(({ to }) => to.port > 9_000)).toBe(false);
});

test('a view has the newest list, the opened number, and a NAT with its age', () => {
  const end = new End();
  end.agent.setLocal(complete(undefined, sequential), 100);
  expect(end.agent.view(350)).toEqual({ number: 1, opened: 0, candidates: complete().candidates, nat: { ...sequential, age: 270 } });
  end.agent.setRemote(peerList([], { number: 7, nat: independent }), 350);
  end.run(350, 360);
  expect(end.agent.view(360)).toMatchObject({ opened: 7 });
  expect(end.agent.nats(350)?.remote).toEqual(independent);
});
