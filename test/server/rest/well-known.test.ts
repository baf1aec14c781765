/** `GET /.well-known/svc`: its content, how long it may be cached, and that clients can parse it. */
import { expect, test } from 'vitest';
import { silentLog } from '../../../platform/environment.ts';
import { decodeStationDocument, STATION_DOCUMENT_PATH } from '../../../protocol/records/index.ts';
import { restApp } from '../../../server/rest/server.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';

const NOW = Date.UTC(2026, 0, 31, 12);
const fingerprint = 'ab'.repeat(32);

async function served(station?: () => { fingerprint: string; port: number }) {
  const store = await openSqliteStore(':memory:');
  const app = restApp({ store, log: silentLog, wallTime: () => NOW, ...(station && { station }) });
  const answer = await app.inject({ method: 'GET', url: STATION_DOCUMENT_PATH });
  await app.close();
  await store.close();
  return answer;
}

test('names the key and the UDP port for a day, to every client, and may be cached by proxies as long', async () => {
  const answer = await served(() => ({ fingerprint, port: 4433 }));
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['cache-control']).toBe('public, max-age=3600');
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
  expect(answer.json()).toEqual({ fingerprint, port: 4433, expires: '2026-02-01T12:00:00.000Z' });
  expect(decodeStationDocument(answer.rawPayload, NOW)).toEqual({ fingerprint, port: 4433, expires: NOW + 86_400_000 });
});

test('contains nothing else, whatever host is named', async () => {
  const answer = await served(() => ({ fingerprint, port: 4433, secret: 'x' }) as { fingerprint: string; port: number });
  expect(Object.keys(answer.json())).toEqual(['fingerprint', 'port', 'expires']);
});

test('is not found without a base station', async () => {
  expect((await served()).statusCode).toBe(404);
});
