/**
 * HTTP endpoints that devices may invoke through the base station. The signing secret is shown once and stored sealed.
 */
import { newServiceSecret } from '../services/signature.ts';
import type { Service } from '../storage/outbound-store.ts';
import { serviceRecord } from '../storage/sealing.ts';
import { newId } from '../storage/secrets.ts';
import { type Administration, creationTime } from './context.ts';
import { organizationOf } from './organizations.ts';
import { AdministrationError, expectFound } from './refusal.ts';
import { checkId, checkServiceTimeout, checkServiceUrl, nameOrNull, ServiceTimeout } from './rules.ts';

/** A service to add; without an id it gets a random one. */
export interface NewService {
  url: string;
  serviceId?: string | undefined;
  organizationId?: string | undefined;
  name?: string | undefined;
  /** ms that an invocation may take. */
  timeout?: number | undefined;
  /** Allows this machine, private networks and http URLs. */
  allowPrivate?: boolean | undefined;
  /** Products that it is attached to from the start. */
  productIds?: readonly string[] | undefined;
}

/** The record of a service without its secret. */
export type ServiceRecord = Omit<Service, 'sealedSecret'>;

/** A service and the products that it is attached to. */
export interface AttachedService {
  readonly record: ServiceRecord;
  readonly products: readonly string[];
}

/**
 * @returns the service with its products, and the secret that signs its requests, which cannot be recovered later
 * @throws AdministrationError; LocalError INVALID_STATE when the id is taken, NOT_FOUND when a product is not of its
 *   organization: nothing is added then
 */
export async function addService(administration: Administration, request: NewService): Promise<AttachedService & { secret: string }> {
  const { store, randomBytes, sealer } = administration;
  const { serviceId = newId('se', randomBytes), timeout = ServiceTimeout.DEFAULT, allowPrivate = false, productIds = [] } = request;
  const checked = {
    serviceId: checkId(serviceId),
    name: nameOrNull(request.name),
    url: checkServiceUrl(request.url, allowPrivate),
    timeout: checkServiceTimeout(timeout),
    allowPrivate,
  };
  const products = productIds.map(checkId);
  const organizationId = await organizationOf(administration, request.organizationId);
  const record = { ...checked, organizationId, created: creationTime(administration) };
  const secret = newServiceSecret(randomBytes);
  const sealedSecret = (await sealer()).seal(secret, serviceRecord(record));
  await store.outbound.addService({ ...record, sealedSecret }, products);
  return { record, products: await store.outbound.productsOfService(record.serviceId), secret };
}

/** Returns the services, without their secrets. */
export async function services({ store }: Administration, organizationId?: string): Promise<ServiceRecord[]> {
  return (await store.outbound.services(organizationId)).map(withoutSecret);
}

/** Returns a service with the products that it is attached to. @throws AdministrationError not-found */
export async function service({ store }: Administration, serviceId: string): Promise<AttachedService> {
  const found = await store.outbound.service(serviceId);
  if (found === null) return notFound(serviceId);
  return { record: withoutSecret(found), products: await store.outbound.productsOfService(serviceId) };
}

/**
 * Lets the devices of a product invoke a service. @throws LocalError NOT_FOUND unless both exist in one organization
 */
export async function attachService({ store }: Administration, serviceId: string, productId: string): Promise<void> {
  await store.outbound.attachService(serviceId, productId);
}

/** Takes effect with the next invocation. @throws AdministrationError not-found when it was not attached */
export async function detachService({ store }: Administration, serviceId: string, productId: string): Promise<void> {
  const what = `service ${serviceId} attached to product ${productId}`;
  expectFound(await store.outbound.detachService(serviceId, productId), 'attachment of a service', serviceId, what);
}

/** Takes effect with the next invocation. @throws AdministrationError not-found */
export async function removeService({ store }: Administration, serviceId: string): Promise<void> {
  expectFound(await store.outbound.removeService(serviceId), 'service', serviceId);
}

function notFound(serviceId: string): never {
  throw new AdministrationError({ kind: 'not-found', record: 'service', id: serviceId }, `there is no service ${serviceId}`);
}

function withoutSecret({ sealedSecret: _, ...record }: Service): ServiceRecord {
  return record;
}
