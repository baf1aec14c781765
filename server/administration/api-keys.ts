/** Keys of the REST interface. The secret is shown once and kept only as a hash. */
import { hashSecret, newApiKeySecret, newId } from '../storage/secrets.ts';
import type { ApiKey } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { organizationOf } from './organizations.ts';
import { expectFound } from './refusal.ts';
import { checkAction, checkId, checkIpEntry, checkName } from './rules.ts';

/** An API key to add; without an id it gets a random one, without a name its id is its name. */
export interface NewApiKey {
  apikeyId?: string | undefined;
  organizationId?: string | undefined;
  name?: string | undefined;
  actions?: readonly string[] | undefined;
  ipWhiteList?: ApiKey['ipWhiteList'] | undefined;
  enforceIpWhitelist?: boolean | undefined;
  isAdmin?: boolean | undefined;
}

/**
 * @returns the key's record, and its secret, which cannot be recovered later
 * @throws AdministrationError; LocalError INVALID_STATE when the id is taken
 */
export async function addApiKey(administration: Administration, request: NewApiKey): Promise<{ record: ApiKey; secret: string }> {
  const { store, randomBytes } = administration;
  const { apikeyId = newId('ak', randomBytes), organizationId, name, actions = [], ipWhiteList = [] } = request;
  const checked = {
    apikeyId: checkId(apikeyId),
    name: name === undefined ? apikeyId : checkName(name),
    enforceIpWhitelist: request.enforceIpWhitelist === true,
    isAdmin: request.isAdmin === true,
    actions: [...new Set(actions.map(checkAction))],
    ipWhiteList: ipWhiteList.map(checkIpEntry),
  };
  const record = {
    organizationId: await organizationOf(administration, organizationId),
    ...checked,
    created: creationTime(administration),
  };
  const secret = newApiKeySecret(record.apikeyId, randomBytes);
  await store.addApiKey(record, hashSecret(secret));
  return { record, secret };
}

/** Returns true when a key cannot be used from any address: its list is enforced and empty. */
export function admitsNoAddress({ enforceIpWhitelist, ipWhiteList }: ApiKey): boolean {
  return enforceIpWhitelist && ipWhiteList.length === 0;
}

/** Takes effect with the next request. @throws AdministrationError not-found */
export async function removeApiKey({ store }: Administration, apikeyId: string): Promise<void> {
  expectFound(await store.removeApiKey(apikeyId), 'API key', apikeyId);
}
