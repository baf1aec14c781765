/** Services merged from several links, the events of listeners, and TXT items. */
import { describe, expect, test } from 'vitest';
import { FoundServices, idsOf, type ScannedService, ServiceStream, txtEntries } from '../../../protocol/discovery/index.ts';

const NAME = 'pr-1-de-1._svc._udp.local';
const WIRED = { name: 'eth0 IPv4', zone: 'eth0' };
const RADIO = { name: 'wlan0 IPv6', zone: 'wlan0' };

const items = (...texts: string[]): Uint8Array[] => texts.map((text) => new TextEncoder().encode(text));

function scanned(addresses: readonly string[], { text = 'a=1', since = 0, listed = ['x'] } = {}): ScannedService {
  return { listed, txt: { items: items(text), since }, endpoints: addresses.map((address) => ({ address, port: 5592 })) };
}

describe('an instance on several links', () => {
  test('is one service with all addresses, those of IPv6 links with a zone', () => {
    const found = new FoundServices();
    found.set(WIRED, NAME, scanned(['192.0.2.1', 'fe80::1', 'fd00::1']));
    found.set(RADIO, NAME.toUpperCase(), scanned(['192.0.2.1', 'fe80::1', 'fd00::1'], { listed: ['y'] }));
    expect(found.all()).toHaveLength(1);
    expect(found.get(NAME)).toMatchObject({ name: NAME, listed: ['x', 'y'] });
    expect(found.get(NAME)?.endpoints.map(({ address }) => address)).toEqual(['192.0.2.1', 'fe80::1%eth0', 'fd00::1', 'fe80::1%wlan0']);
  });

  test('keeps its addresses unchanged without zones', () => {
    const found = new FoundServices();
    found.set({ name: 'x' }, NAME, scanned(['fe80::1']));
    expect(found.get(NAME)?.endpoints).toEqual([{ address: 'fe80::1', port: 5592 }]);
  });

  test('has the TXT items of the link that heard a new set last', () => {
    const found = new FoundServices();
    found.set(WIRED, NAME, scanned(['192.0.2.1'], { text: 'a=2', since: 7 }));
    found.set(RADIO, NAME, scanned(['192.0.2.1'], { text: 'a=1', since: 5 }));
    expect(found.get(NAME)?.txt).toEqual(items('a=2'));
    found.set(WIRED, NAME, { ...scanned(['192.0.2.1']), txt: null });
    expect(found.get(NAME)?.txt).toEqual(items('a=1'));
  });

  test('exists until the last link has lost it', () => {
    const found = new FoundServices();
    for (const link of [WIRED, RADIO]) found.set(link, NAME, scanned([link === WIRED ? '192.0.2.1' : '192.0.2.2']));
    expect(found.removeLink(WIRED.name)).toEqual([NAME]);
    expect(found.get(NAME)?.endpoints.map(({ address }) => address)).toEqual(['192.0.2.2']);
    expect(found.removeLink(WIRED.name)).toEqual([]);
    found.set(RADIO, NAME, null);
    found.set(RADIO, NAME, null);
    expect([found.get(NAME), found.all()]).toEqual([null, []]);
  });
});

describe('a stream', () => {
  const service = (text: string, ...addresses: string[]) => ({
    name: NAME,
    listed: ['x'],
    txt: items(text),
    endpoints: addresses.map((address) => ({ address, port: 1 })),
  });

  test('emits ADD, UPDATE and REMOVE, and nothing twice or for another order of addresses', () => {
    const stream = new ServiceStream(() => true);
    const actions = [
      service('a=1', '192.0.2.1', '192.0.2.2'),
      { ...service('a=1', '192.0.2.2', '192.0.2.1'), listed: ['x', 'y'] },
      service('a=2', '192.0.2.1', '192.0.2.2'),
      service('a=2', '192.0.2.1'),
      { ...service('a=2', '192.0.2.1'), endpoints: [{ address: '192.0.2.1', port: 2 }] },
      null,
      null,
    ].map((now) => stream.update(NAME, now)?.action);
    expect(actions).toEqual(['ADD', undefined, 'UPDATE', 'UPDATE', 'UPDATE', 'REMOVE', undefined]);
  });

  test('emits REMOVE with the last known service, also for one that no longer matches', () => {
    const stream = new ServiceStream(({ listed }) => listed.includes('x'));
    expect(stream.update(NAME, { ...service('a=1', '192.0.2.1'), listed: ['y'] })).toBeNull();
    expect(stream.update(NAME, service('a=1', '192.0.2.1'))?.action).toBe('ADD');
    const removed = stream.update(NAME.toUpperCase(), { ...service('a=2', '192.0.2.1'), listed: [] });
    expect(removed).toEqual({ action: 'REMOVE', service: service('a=1', '192.0.2.1') });
  });
});

describe('TXT items (RFC 6763 §6.4)', () => {
  test('the first item of a key counts, in any case; items without a key are ignored', () => {
    const read = txtEntries(items('Room=kitchen', 'room=cellar', 'ROOM=hall', '=x', '', 'flag', 'empty=', 'sum=a=b'));
    expect([...read]).toEqual([
      ['Room', 'kitchen'],
      ['flag', ''],
      ['empty', ''],
      ['sum', 'a=b'],
    ]);
  });

  test('invalid UTF-8 is replaced by U+FFFD', () => {
    expect([...txtEntries([Uint8Array.of(0x61, 0x3d, 0xff)])]).toEqual([['a', '\ufffd']]);
  });

  test('ids are taken unchanged, and empty without items', () => {
    expect(idsOf(items('ProductId=PR-1', 'deviceid=de-1'))).toEqual({ productId: 'PR-1', deviceId: 'de-1' });
    expect(idsOf([])).toEqual({ productId: '', deviceId: '' });
  });
});
