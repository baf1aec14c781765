/** A device in the data directory of a base station that is not running. */
import { openStore } from '../../server/index.ts';
import { ids } from './fixture/identifiers.ts';

/** Registers product and device of `ids` with this key. */
export async function registerInDirectory(data: string, fingerprint: string): Promise<void> {
  const store = await openStore(data);
  const created = new Date().toISOString();
  const { organizationId } = await store.defaultOrganization({ organizationId: 'or-test', name: null, created });
  await store.addProduct({ productId: ids.productId, organizationId, name: null, created });
  await store.addDevice({ ...ids, name: null, fingerprint, created });
  await store.close();
}
