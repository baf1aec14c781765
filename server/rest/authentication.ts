/**
 * Authenticates a caller of the REST interface: the API key in `Authorization: Bearer <API_KEY>` (docs/rest.md).
 *
 * Order: key → 401, the client's address (`client-address.ts`) against the key's list → 403. The route decides what the
 * key may read. The key's record is read at each request, so a removed key or a changed list takes effect at once.
 */
import type { FastifyRequest } from 'fastify';
import { ipAllowed } from '../administration/ip-list.ts';
import type { ClientAddresses } from '../client-address.ts';
import { hashSecret, sameHash } from '../storage/secrets.ts';
import type { ApiKey, Store } from '../storage/store.ts';
import { RestError } from './errors.ts';

/** Used for comparison when the key's id is unknown, so that an unknown id takes the same steps. */
const unknownKeyHash = hashSecret('');

/** Returns the key of a request. @throws RestError 401, 403 */
export async function authenticate(request: FastifyRequest, store: Store, addresses: Pick<ClientAddresses, 'of'>): Promise<ApiKey> {
  const token = bearer(request.headers.authorization);
  const apikeyId = token.slice(0, token.indexOf('.'));
  const expected = await store.apiKeyHash(apikeyId);
  const proved = sameHash(hashSecret(token), expected ?? unknownKeyHash);
  const key = proved && expected !== null ? await store.apiKey(apikeyId) : null;
  if (key === null) throw unauthorized();
  admitAddress(key, addresses.of(request.raw));
  return key;
}

function bearer(header: string | undefined): string {
  const token = /^Bearer +([\x21-\x7e]{1,512})$/i.exec(header ?? '')?.[1];
  if (token === undefined) throw unauthorized();
  return token;
}

function unauthorized(): RestError {
  return new RestError(401, 'authentication_error', 'a valid API key is needed: Authorization: Bearer <API_KEY>');
}

function admitAddress(key: ApiKey, address: string): void {
  if (!key.enforceIpWhitelist) return;
  const entries = key.ipWhiteList.map(({ ip }) => ip);
  if (!ipAllowed(entries, address)) throw new RestError(403, 'forbidden', 'this API key may not be used from this address');
}
