/** Products are kinds of devices; devices and keys belong to them. */
import { newId } from '../storage/secrets.ts';
import type { Product } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { organizationOf } from './organizations.ts';
import { AdministrationError, expectFound } from './refusal.ts';
import { checkId, nameOrNull } from './rules.ts';

/** A product to add; without an id it gets a random one, without an organization it belongs to the only one. */
export interface NewProduct {
  productId?: string | undefined;
  organizationId?: string | undefined;
  name?: string | undefined;
}

/** @throws AdministrationError; LocalError INVALID_STATE when the id is taken */
export async function addProduct(administration: Administration, { productId, organizationId, name }: NewProduct): Promise<Product> {
  const named = {
    productId: productId === undefined ? newId('pr', administration.randomBytes) : checkId(productId),
    name: nameOrNull(name),
  };
  const product = {
    productId: named.productId,
    organizationId: await organizationOf(administration, organizationId),
    name: named.name,
    created: creationTime(administration),
  };
  await administration.store.addProduct(product);
  return product;
}

/** @param force also removes its devices @throws AdministrationError not-found, not-empty */
export async function removeProduct({ store }: Administration, productId: string, force = false): Promise<void> {
  const { length: count } = await store.devices(productId);
  if (count > 0 && !force) throw new AdministrationError({ kind: 'not-empty', count }, `product ${productId} still has ${count} devices`);
  expectFound(await store.removeProduct(productId), 'product', productId);
}
