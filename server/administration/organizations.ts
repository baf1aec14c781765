/**
 * Organizations own products and keys. One is created at first use; further ones serve several customers on one base
 * station.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { newId } from '../storage/secrets.ts';
import type { Organization } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { AdministrationError, expectFound } from './refusal.ts';
import { checkId, nameOrNull } from './rules.ts';

/** Name of the organization that is created at first use. */
const DEFAULT_NAME = 'default';

/** An organization to add; without an id it gets a random one. */
export interface NewOrganization {
  organizationId?: string | undefined;
  name?: string | undefined;
}

/** @throws AdministrationError; LocalError INVALID_STATE when the id is taken */
export async function addOrganization(administration: Administration, { organizationId, name }: NewOrganization): Promise<Organization> {
  const organization = {
    organizationId: organizationId === undefined ? newId('or', administration.randomBytes) : checkId(organizationId),
    name: nameOrNull(name),
    created: creationTime(administration),
  };
  await administration.store.addOrganization(organization);
  return organization;
}

/** @param force also removes everything that belongs to it @throws AdministrationError not-found, not-empty */
export async function removeOrganization({ store }: Administration, organizationId: string, force = false): Promise<void> {
  const owned = (
    await Promise.all([
      store.products(organizationId),
      store.apps(organizationId),
      store.apiKeys(organizationId),
      store.outbound.pushCredentials(organizationId),
      store.outbound.services(organizationId),
    ])
  ).flat().length;
  if (owned > 0 && !force) {
    const message = `organization ${organizationId} still has ${owned} products, keys and services`;
    throw new AdministrationError({ kind: 'not-empty', count: owned }, message);
  }
  expectFound(await store.removeOrganization(organizationId), 'organization', organizationId);
}

/**
 * Returns the organization for a new record: the one named, else the only one, which is created when there is none yet.
 * @throws AdministrationError not-found, several-organizations
 */
export async function organizationOf(administration: Administration, organizationId: string | undefined): Promise<string> {
  if (organizationId === undefined) return defaultOrganization(administration);
  expectFound((await administration.store.organization(organizationId)) !== null, 'organization', organizationId);
  return organizationId;
}

async function defaultOrganization(administration: Administration): Promise<string> {
  const { store, randomBytes } = administration;
  const fresh = { organizationId: newId('or', randomBytes), name: DEFAULT_NAME, created: creationTime(administration) };
  try {
    return (await store.defaultOrganization(fresh)).organizationId;
  } catch (error) {
    if (!(error instanceof LocalError) || error.code !== 'INVALID_STATE') throw error;
    throw new AdministrationError({ kind: 'several-organizations' }, error.message);
  }
}
