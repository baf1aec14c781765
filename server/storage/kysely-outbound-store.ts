/** {@link OutboundStore} over Kysely. */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { LocalError } from '../../protocol/errors/index.ts';
import { adding, removed, type StoreDialect } from './dialect.ts';
import type { OutboundStore, PushCredential, Service } from './outbound-store.ts';
import type { Tables } from './schema.ts';

export class KyselyOutboundStore implements OutboundStore {
  readonly #db: Kysely<Tables>;
  readonly #dialect: StoreDialect;

  constructor(db: Kysely<Tables>, dialect: StoreDialect) {
    this.#db = db;
    this.#dialect = dialect;
  }

  pushCredentials(organizationId?: string): Promise<PushCredential[]> {
    const query = this.#db.selectFrom('pushCredentials').selectAll().orderBy('created').orderBy('projectId');
    return (organizationId === undefined ? query : query.where('organizationId', '=', organizationId)).execute();
  }

  async pushCredential(organizationId: string, projectId: string): Promise<PushCredential | null> {
    const query = this.#db.selectFrom('pushCredentials').selectAll();
    return (await query.where('organizationId', '=', organizationId).where('projectId', '=', projectId).executeTakeFirst()) ?? null;
  }

  async addPushCredential(credential: PushCredential): Promise<void> {
    const what = `push credential of project ${credential.projectId}`;
    const insert = () => this.#db.insertInto('pushCredentials').values(credential).execute();
    await adding(this.#dialect, what, insert, `organization ${credential.organizationId}`);
  }

  removePushCredential(organizationId: string, projectId: string): Promise<boolean> {
    return removed(this.#db.deleteFrom('pushCredentials').where('organizationId', '=', organizationId).where('projectId', '=', projectId));
  }

  async services(organizationId?: string): Promise<Service[]> {
    const query = this.#db.selectFrom('services').selectAll().orderBy('created').orderBy('serviceId');
    return (await (organizationId === undefined ? query : query.where('organizationId', '=', organizationId)).execute()).map(serviceOf);
  }

  async service(serviceId: string): Promise<Service | null> {
    const row = await this.#db.selectFrom('services').selectAll().where('serviceId', '=', serviceId).executeTakeFirst();
    return row ? serviceOf(row) : null;
  }

  async serviceOfProduct(serviceId: string, productId: string): Promise<Service | null> {
    const row = await this.#db
      .selectFrom('services')
      .innerJoin('serviceProducts', 'serviceProducts.serviceId', 'services.serviceId')
      .selectAll('services')
      .where('services.serviceId', '=', serviceId)
      .where('productId', '=', productId)
      .executeTakeFirst();
    return row ? serviceOf(row) : null;
  }

  async addService(service: Service, productIds: readonly string[] = []): Promise<void> {
    const insert = (): Promise<void> =>
      this.#db.transaction().execute(async (transaction) => {
        const row = { ...service, allowPrivate: Number(service.allowPrivate) };
        await transaction.insertInto('services').values(row).execute();
        for (const productId of productIds) await attach(transaction, service.serviceId, productId);
      });
    await adding(this.#dialect, `service ${service.serviceId}`, insert, `organization ${service.organizationId}`);
  }

  removeService(serviceId: string): Promise<boolean> {
    return removed(this.#db.deleteFrom('services').where('serviceId', '=', serviceId));
  }

  async productsOfService(serviceId: string): Promise<string[]> {
    const query = this.#db.selectFrom('serviceProducts').select('productId').where('serviceId', '=', serviceId).orderBy('productId');
    return (await query.execute()).map(({ productId }) => productId);
  }

  attachService(serviceId: string, productId: string): Promise<void> {
    return this.#db.transaction().execute((transaction) => attach(transaction, serviceId, productId));
  }

  detachService(serviceId: string, productId: string): Promise<boolean> {
    return removed(this.#db.deleteFrom('serviceProducts').where('serviceId', '=', serviceId).where('productId', '=', productId));
  }
}

function serviceOf(row: Selectable<Tables['services']>): Service {
  return { ...row, allowPrivate: row.allowPrivate !== 0 };
}

/** @throws LocalError NOT_FOUND unless both exist in one organization */
async function attach(transaction: Transaction<Tables>, serviceId: string, productId: string): Promise<void> {
  const service = await transaction.selectFrom('services').select('organizationId').where('serviceId', '=', serviceId).executeTakeFirst();
  if (!service) throw new LocalError('NOT_FOUND', `there is no service ${serviceId}`);
  const product = await transaction.selectFrom('products').select('organizationId').where('productId', '=', productId).executeTakeFirst();
  if (product?.organizationId !== service.organizationId) {
    throw new LocalError('NOT_FOUND', `there is no product ${productId} in organization ${service.organizationId}`);
  }
  const insert = transaction.insertInto('serviceProducts').values({ serviceId, productId });
  await insert.onConflict((conflict) => conflict.doNothing()).execute();
}
