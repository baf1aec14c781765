/** Service accounts of the push provider, one for each project of an organization. The private key is stored sealed. */
import { PROVIDER_URL, parseServiceAccount } from '../push/account.ts';
import type { PushCredential } from '../storage/outbound-store.ts';
import { credentialRecord } from '../storage/sealing.ts';
import { type Administration, creationTime } from './context.ts';
import { organizationOf } from './organizations.ts';
import { expectFound } from './refusal.ts';
import { checkProviderUrl } from './rules.ts';

/** A push credential to add. */
export interface NewPushCredential {
  /** The service account's document, as the provider issues it: JSON. */
  account: unknown;
  /** Base URL of the provider's HTTP v1 interface; default the provider's own. */
  baseUrl?: string | undefined;
  organizationId?: string | undefined;
}

/** The record of a push credential without its key. */
export type PushCredentialRecord = Omit<PushCredential, 'sealedKey'>;

/**
 * @throws AdministrationError; LocalError INVALID_ARGUMENT for an unusable account, INVALID_STATE when the project has
 * a credential
 */
export async function addPushCredential(administration: Administration, request: NewPushCredential): Promise<PushCredentialRecord> {
  const { privateKey, ...account } = parseServiceAccount(request.account);
  const baseUrl = checkProviderUrl(request.baseUrl ?? PROVIDER_URL);
  const organizationId = await organizationOf(administration, request.organizationId);
  const record = { ...account, organizationId, baseUrl, created: creationTime(administration) };
  const sealedKey = (await administration.sealer()).seal(privateKey, credentialRecord(record));
  await administration.store.outbound.addPushCredential({ ...record, sealedKey });
  return record;
}

/** Returns the push credentials, without their keys. */
export async function pushCredentials({ store }: Administration, organizationId?: string): Promise<PushCredentialRecord[]> {
  return (await store.outbound.pushCredentials(organizationId)).map(({ sealedKey: _, ...record }) => record);
}

/** Takes effect with the next notification. @throws AdministrationError not-found, several-organizations */
export async function removePushCredential(
  administration: Administration,
  { projectId, organizationId }: { projectId: string; organizationId?: string | undefined },
): Promise<void> {
  const owner = await organizationOf(administration, organizationId);
  const found = await administration.store.outbound.removePushCredential(owner, projectId);
  expectFound(found, 'push credential', projectId, `push credential of project ${projectId}`);
}
