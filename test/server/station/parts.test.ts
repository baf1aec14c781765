/** Admission, presence and rates of a base station. */
import { describe, expect, test, vi } from 'vitest';
import type { Path } from '../../../protocol/path.ts';
import { Rates } from '../../../protocol/rates.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { Admission, type AdmissionOptions } from '../../../server/station/admission.ts';
import { Presence } from '../../../server/station/presence.ts';
import { addressKey } from '../../../server/station/rates.ts';

const session = (name: string): Session => ({ name }) as unknown as Session;
const device = { productId: 'pr-1', deviceId: 'de-1' };

describe('Admission', () => {
  let timeouts: (() => void)[];
  /** Of four slots, one of which is for registered keys; all keys are, but those of strangers. */
  function admission() {
    timeouts = [];
    const options = {
      clock: { schedule: (_: number, run: () => void) => timeouts.push(run) && (() => {}) },
      tally: { count: () => {} },
      store: { devicesByFingerprint: async (key: string) => (key.startsWith('stranger') ? [] : [device]) },
      settings: { connections: 4, connectionsPerAddress: 100, arrivalTimeout: 5_000 },
      onProved: () => {},
    };
    return new Admission(options as unknown as AdmissionOptions);
  }
  const arriving = (fingerprint: string) =>
    ({ peer: { fingerprint }, paths: { active: { address: '192.0.2.1' } }, close: vi.fn() }) as unknown as Session;
  const client = (sessions: Admission, name: string, deviceId = name): boolean => {
    const one = arriving(name);
    return sessions.arrived(one) && sessions.client(one, { productId: 'pr-1', deviceId }, name);
  };
  /** Clients of three devices, and those of the last quarter that arrive then. */
  const full = (...names: string[]) => {
    const sessions = admission();
    for (const name of ['a', 'b', 'c']) expect(client(sessions, name)).toBe(true);
    const late = names.map(arriving);
    return { sessions, late, arrived: late.map((each) => sessions.arrived(each)) };
  };
  const closes = (all: Session[]): number[] => all.map(({ close }) => vi.mocked(close).mock.calls.length);

  test('evicts strangers, the oldest first, and no session with a credential', () => {
    const sessions = admission();
    const all = ['1', '2', '3', '4'].map(arriving);
    expect(all.map((each) => sessions.arrived(each))).toEqual([true, true, true, true]);
    sessions.proved(all[3]!);
    expect([closes(all), sessions.unproved]).toEqual([[1, 0, 0, 0], 2]);
    for (const name of ['5', '6', '7', '8']) expect(sessions.arrived(arriving(name))).toBe(true);
    expect([closes(all), sessions.unproved]).toEqual([[1, 1, 1, 0], 2]);
  });

  test('leaves slots of a device to those with another token than most of its clients; any may ask again for another', () => {
    const sessions = admission();
    const all = ['1', '2', '3'].map(arriving);
    const may = (one: number, credential: string, where = device) => sessions.client(all[one]!, where, credential);
    for (const each of all) sessions.arrived(each);
    expect([may(0, 'key'), may(0, 'key', { ...device, deviceId: 'de-2' }), may(1, 'key')]).toEqual([true, true, false]);
    expect(may(2, 'own')).toBe(true);
    expect(closes(all)).toEqual([0, 1, 0]);
  });

  test('has in the last quarter no stranger, no client, and a registered key only until its time is over', async () => {
    const { sessions, late, arrived } = full('stranger', 'd');
    await new Promise(setImmediate);
    expect([arrived, closes(late)]).toEqual([
      [true, false],
      [1, 1],
    ]);
    expect(client(sessions, 'd')).toBe(false);
    const device = arriving('d');
    expect(sessions.arrived(device)).toBe(true);
    expect(sessions.arrived(arriving('e'))).toBe(false);
    timeouts.at(-1)!();
    expect([closes([device]), sessions.arrived(arriving('e'))]).toEqual([[1], true]);
  });

  test('counts strangers among the slots that clients of a device may take', () => {
    const sessions = admission();
    for (const stranger of ['a', 'b']) sessions.arrived(arriving(stranger));
    expect([client(sessions, 'one', 'x'), client(sessions, 'two', 'x')]).toEqual([true, true]);
  });

  test('gives the slot of a client that has ended to the next one of its device', () => {
    const sessions = admission();
    const [first, second] = [arriving('first'), arriving('second')];
    for (const each of [first, second]) expect(sessions.arrived(each) && sessions.client(each, device, each.peer.fingerprint)).toBe(true);
    expect(client(sessions, 'third', device.deviceId)).toBe(false);
    for (const each of [first, second]) sessions.ended(each);
    expect([client(sessions, 'fourth', device.deviceId), client(sessions, 'fifth', device.deviceId)]).toEqual([true, true]);
  });

  test('closes the older session of a key in the last quarter for a newer one', () => {
    const { late, arrived } = full('d', 'd');
    expect([arrived, closes(late)]).toEqual([
      [true, true],
      [1, 0],
    ]);
  });
});

describe('Presence', () => {
  const located = async (presence: Presence): Promise<Session | null> => (await presence.locate(device))?.session ?? null;

  test('has the newest session of a device, and the end of an older one changes nothing', async () => {
    const presence = new Presence();
    const [old, fresh] = [session('old'), session('fresh')];
    expect(presence.add({ ...device, session: old, since: 0 })).toBeNull();
    expect(presence.add({ ...device, session: fresh, since: 0 })).toMatchObject({ session: old, since: 0 });
    presence.remove(old);
    expect(await presence.locate(device)).toEqual({ at: 'here', session: fresh });
    expect(presence.ofSession(old)).toBeNull();
    presence.remove(fresh);
    expect(await located(presence)).toBeNull();
    expect(presence.size).toBe(0);
  });

  test('replaces nothing when a device attaches again on the same session, also under another name', async () => {
    const presence = new Presence();
    const one = session('one');
    presence.add({ ...device, session: one, since: 0 });
    expect(presence.add({ ...device, session: one, since: 0 })).toBeNull();
    expect(presence.add({ productId: 'pr-1', deviceId: 'de-2', session: one, since: 0 })).toBeNull();
    expect(await located(presence)).toBeNull();
    expect(presence.size).toBe(1);
  });
});

describe('Rates', () => {
  test('are separate for each key, and the wait is in whole seconds', () => {
    const rates = new Rates(5, 5);
    const answers = Array.from({ length: 7 }, () => rates.take('a', 0));
    expect(answers).toEqual([0, 0, 0, 0, 0, 1, 1]);
    expect(rates.take('b', 0)).toBe(0);
    expect(rates.take('a', 200)).toBe(0);
    expect(rates.take('a', 200)).toBe(1);
    expect(new Rates(0.1, 0.5).take('slow', 0)).toBe(5);
  });

  test('take bounded memory, whatever the keys', { tags: ['slow'] }, () => {
    const rates = new Rates(1, 1);
    for (let i = 0; i < 50_000; i++) rates.take(`key ${i}`, 0);
    expect(rates.take('key 49999', 0)).toBe(1);
    expect(rates.take('key 0', 0)).toBe(0);
  });

  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['2001:db8:1::', '2001:db8:1:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1:2:3:4', 'fe80:0:0:0'],
  ])('have for %s the key %s', (address, key) => {
    expect(addressKey({ address } as Path)).toBe(key);
  });
});
