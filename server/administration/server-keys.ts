/** Server keys, which let clients reach devices. Stored only as a hash: the key itself is shown once. */
import { hashSecret, newId, newServerKey } from '../storage/secrets.ts';
import type { App, JwtIssuer } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { organizationOf } from './organizations.ts';
import { expectFound, invalid } from './refusal.ts';
import { checkClaim, checkId, checkJwksUri, checkJwtText, checkServerKey, nameOrNull } from './rules.ts';

/**
 * A server key to add: random unless the operator supplies one; for all products of its organization unless some are
 * named; sufficient alone unless an issuer of tokens is named.
 */
export interface NewServerKey {
  serverKey?: string | undefined;
  organizationId?: string | undefined;
  productIds?: readonly string[] | undefined;
  name?: string | undefined;
  /** Clients must also show a token of this issuer. */
  jwt?: Partial<JwtIssuer> | undefined;
}

/** Changes of a server key; members left out stay as they are. */
export interface ServerKeyChanges {
  name?: string | undefined;
  /** Null: the key alone is sufficient from now on. */
  jwt?: Partial<JwtIssuer> | null | undefined;
}

/** Claim of a token that lists devices, unless the key names another (PROTOCOL.md §7.6). */
const DEFAULT_CLAIM = 'svc_ids';
/** Claim of a token that names whom it is for (RFC 7519 §4.1.3), unless the key names another. */
const AUDIENCE_CLAIM = 'aud';

/** The record of a server key without the key. */
export type ServerKeyRecord = Omit<App, 'keyHash'>;

/**
 * @returns the record, and the key, which cannot be recovered later
 * @throws AdministrationError; LocalError INVALID_STATE when the key exists, NOT_FOUND when one of the products does
 *   not
 */
export async function addServerKey(
  administration: Administration,
  { serverKey, organizationId, productIds, name, jwt }: NewServerKey,
): Promise<{ record: ServerKeyRecord; serverKey: string }> {
  const { store, randomBytes } = administration;
  const key = serverKey === undefined ? newServerKey(randomBytes) : checkServerKey(serverKey);
  const checked = { name: nameOrNull(name), productIds: productIds?.map(checkId) ?? null, ...authorization(jwt ?? null) };
  const app: App = {
    ...checked,
    appId: newId('ap', randomBytes),
    organizationId: await organizationOf(administration, organizationId),
    keyHash: hashSecret(key),
    created: creationTime(administration),
  };
  await store.addApp(app);
  return { record: withoutHash(app), serverKey: key };
}

/** Returns the server keys, without the keys themselves. */
export async function serverKeys({ store }: Administration, organizationId?: string): Promise<ServerKeyRecord[]> {
  return (await store.apps(organizationId)).map(withoutHash);
}

/**
 * Returns a server key without the key itself.
 * @param key the key (`sk-…`), or its id (`ap-…`)
 * @throws AdministrationError not-found, which does not repeat the key
 */
export async function serverKey({ store }: Administration, key: string): Promise<ServerKeyRecord> {
  const found = (await store.appByKey(hashSecret(key))) ?? (await store.apps()).find(({ appId }) => appId === key);
  expectFound(found !== undefined, 'server key', null, 'such server key');
  return withoutHash(found!);
}

/**
 * Changes a server key. Takes effect with the next connect; open connections stay.
 * @param key as {@link serverKey}
 * @returns the changed record
 * @throws AdministrationError
 */
export async function changeServerKey(
  administration: Administration,
  key: string,
  { name, jwt }: ServerKeyChanges,
): Promise<ServerKeyRecord> {
  const before = await serverKey(administration, key);
  const changes = {
    name: name === undefined ? before.name : nameOrNull(name),
    ...authorization(jwt === undefined ? before.jwt : jwt && { ...before.jwt, ...jwt }),
  };
  expectFound(await administration.store.updateApp(before.appId, changes), 'server key', null, 'such server key');
  return { ...before, ...changes };
}

/**
 * Removes a server key; open connections stay.
 * @param key the key (`sk-…`), or its id (`ap-…`)
 * @returns its id
 * @throws AdministrationError not-found, which does not repeat the key
 */
export async function removeServerKey({ store }: Administration, key: string): Promise<string> {
  const appId = (await store.appByKey(hashSecret(key)))?.appId ?? key;
  expectFound(await store.removeApp(appId), 'server key', null, 'such server key');
  return appId;
}

/** Returns the settings with the tokens of an issuer, or without. */
function authorization(jwt: Partial<JwtIssuer> | null): Pick<App, 'authType' | 'jwt'> {
  if (jwt === null) return { authType: 'NONE', jwt: null };
  const { issuer, audience, audienceClaim = AUDIENCE_CLAIM, jwksUri, svcIdsClaim = DEFAULT_CLAIM } = jwt;
  if (issuer === undefined || audience === undefined || jwksUri === undefined)
    return invalid('tokens need all three: issuer, audience and the URL of the keys');
  return {
    authType: 'JWT',
    jwt: {
      issuer: checkJwtText('an issuer', issuer),
      audience: checkJwtText('an audience', audience),
      audienceClaim: checkClaim(audienceClaim),
      jwksUri: checkJwksUri(jwksUri),
      svcIdsClaim: checkClaim(svcIdsClaim),
    },
  };
}

function withoutHash({ keyHash: _, ...record }: App): ServerKeyRecord {
  return record;
}
