/** A push provider for tests: it accepts the sign-in, and gives the test's answers. */
import type { HttpAnswer, HttpRequest } from '../../../server/index.ts';
import { credentialRecord } from '../../../server/storage/sealing.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

/** Project of organization or-a. */
export const PROJECT = 'demo';

/** Restarts the station with a provider. @param answer to everything but the sign-in */
export async function addProvider(
  station: StationUnderTest,
  answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>,
): Promise<void> {
  station.outbound = {
    sign: async () => 'assertion',
    post: async (request) =>
      request.url.pathname === '/token' ? http(200, 'application/json', '{"access_token":"t","expires_in":3600}') : answer(request),
  };
  station.kill();
  await station.start();
  const credential = {
    organizationId: 'or-a',
    projectId: PROJECT,
    clientEmail: 'a@b',
    keyId: null,
    tokenUrl: 'https://p.example/token',
    created: '2026-01-02T03:04:05.678Z',
  };
  const sealedKey = station.sealer.seal('key', credentialRecord(credential));
  await station.store.outbound.addPushCredential({ ...credential, sealedKey, baseUrl: 'https://p.example' });
}

export function http(status: number, type: string, body: string): HttpAnswer {
  return { status, headers: { 'content-type': type }, body: new TextEncoder().encode(body), cut: false };
}
