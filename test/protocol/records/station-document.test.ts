/** The document by which a base station is authenticated over TLS is parsed strictly. */
import { describe, expect, test } from 'vitest';
import { decodeStationDocument } from '../../../protocol/records/index.ts';

const NOW = Date.UTC(2026, 5, 1);
const DAY = 86_400_000;
const good = { fingerprint: 'ab'.repeat(32), port: 4433, expires: '2026-06-02T00:00:00Z' };

const decode = (document: unknown) =>
  decodeStationDocument(new TextEncoder().encode(typeof document === 'string' ? document : JSON.stringify(document)), NOW);

describe('a document', () => {
  test('has the fingerprint, the port and an expiry', () => {
    expect(decode(good)).toEqual({ fingerprint: good.fingerprint, port: 4433, expires: NOW + DAY });
  });

  test('may have unknown members', () => {
    expect(decode({ ...good, webSocket: 'wss://station.example/svc' })).toEqual(decode(good));
  });

  test.each(['1970-01-01T00:00:00Z', '2000-02-29T23:59:59Z', '2024-12-31T12:34:56.789Z', '2026-03-01T00:00:00Z', '2100-03-01T00:00:01Z'])(
    'has a time in the standard form: %s',
    (expires) => {
      const second = Math.floor(Date.parse(expires) / 1000) * 1000;
      const bytes = new TextEncoder().encode(JSON.stringify({ ...good, expires }));
      expect(decodeStationDocument(bytes, second - 1).expires).toBe(second);
    },
  );

  test('is valid for 7 days at most', () => {
    expect(decode({ ...good, expires: '2026-06-08T00:00:00Z' }).expires).toBe(NOW + 7 * DAY);
    expect(decode({ ...good, expires: '2036-06-01T00:00:00.000Z' }).expires).toBe(NOW + 7 * DAY);
  });

  test.each<[string, unknown, RegExp]>([
    ['HTML', '<!doctype html><title>Welcome</title>', /not JSON/],
    ['nothing', '', /not JSON/],
    ['an array', [good], /not a JSON object/],
    ['null', null, /not a JSON object/],
    ['no fingerprint', { ...good, fingerprint: undefined }, /"fingerprint"/],
    ['a short fingerprint', { ...good, fingerprint: 'ab'.repeat(16) }, /"fingerprint"/],
    ['an upper-case fingerprint', { ...good, fingerprint: 'AB'.repeat(32) }, /"fingerprint"/],
    ['a fingerprint in a list', { ...good, fingerprint: [good.fingerprint] }, /"fingerprint"/],
    ['a port as text', { ...good, port: '4433' }, /"port"/],
    ['port 0', { ...good, port: 0 }, /"port"/],
    ['port 65536', { ...good, port: 65_536 }, /"port"/],
    ['half a port', { ...good, port: 1.5 }, /"port"/],
    ['no expiry', { ...good, expires: undefined }, /"expires"/],
    ['an expiry in seconds', { ...good, expires: 1_800_000_000 }, /"expires"/],
    ['an expiry in another zone', { ...good, expires: '2026-06-02T00:00:00+02:00' }, /"expires"/],
    ['an invalid day', { ...good, expires: '2026-13-02T00:00:00Z' }, /"expires"/],
    ['the 29th of a February that has 28 days', { ...good, expires: '2027-02-29T00:00:00Z' }, /"expires"/],
    ['an invalid hour', { ...good, expires: '2026-06-02T24:00:00Z' }, /"expires"/],
    ['an expiry in the past', { ...good, expires: '2026-05-31T23:59:59Z' }, /expired/],
    ['an expiry just now', { ...good, expires: '2026-06-01T00:00:00Z' }, /expired/],
  ])('is refused: %s', (_, document, message) => {
    expect(() => decode(document)).toThrow(expect.objectContaining({ code: 'BAD_RESPONSE', message: expect.stringMatching(message) }));
  });

  test('is refused when it is not UTF-8', () => {
    expect(() => decodeStationDocument(Uint8Array.of(0x22, 0xff, 0x22), NOW)).toThrow(/not JSON/);
  });
});
