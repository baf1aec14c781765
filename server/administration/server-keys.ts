/** Server keys, which let clients reach devices. Kept only as a hash: the key itself is shown once. */
import { hashSecret, newId, newServerKey } from '../storage/secrets.ts';
import type { App } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { organizationOf } from './organizations.ts';
import { expectFound } from './refusal.ts';
import { checkId, checkServerKey, nameOrNull } from './rules.ts';

/**
 * A server key to add: random unless the operator brings one along; for all products of its organization unless some
 * are named.
 */
export interface NewServerKey {
  serverKey?: string | undefined;
  organizationId?: string | undefined;
  productIds?: readonly string[] | undefined;
  name?: string | undefined;
}

/** The record of a server key without the key. */
export type ServerKeyRecord = Omit<App, 'keyHash'>;

/**
 * @returns the record, and the key, which cannot be had again
 * @throws AdministrationError; LocalError INVALID_STATE when the key exists, NOT_FOUND when one of the products does
 * not
 */
export async function addServerKey(
  administration: Administration,
  { serverKey, organizationId, productIds, name }: NewServerKey,
): Promise<{ record: ServerKeyRecord; serverKey: string }> {
  const { store, randomBytes } = administration;
  const key = serverKey === undefined ? newServerKey(randomBytes) : checkServerKey(serverKey);
  const limits = { name: nameOrNull(name), productIds: productIds?.map(checkId) ?? null };
  const app: App = {
    appId: newId('ap', randomBytes),
    organizationId: await organizationOf(administration, organizationId),
    name: limits.name,
    authType: 'NONE',
    keyHash: hashSecret(key),
    productIds: limits.productIds,
    created: creationTime(administration),
  };
  await store.addApp(app);
  return { record: withoutHash(app), serverKey: key };
}

/** The server keys, without the keys themselves. */
export async function serverKeys({ store }: Administration, organizationId?: string): Promise<ServerKeyRecord[]> {
  return (await store.apps(organizationId)).map(withoutHash);
}

/**
 * Connections that are open stay.
 * @param key the key (`sk-…`), or its id (`ap-…`)
 * @returns its id
 * @throws AdministrationError not-found, which does not repeat the key
 */
export async function removeServerKey({ store }: Administration, key: string): Promise<string> {
  const appId = (await store.appByKey(hashSecret(key)))?.appId ?? key;
  expectFound(await store.removeApp(appId), 'server key', null, 'such server key');
  return appId;
}

function withoutHash({ keyHash: _, ...record }: App): ServerKeyRecord {
  return record;
}
