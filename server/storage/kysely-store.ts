/**
 * {@link Store} over Kysely. Only this file, `kysely-outbound-store.ts`, `kysely-invitation-store.ts` and
 * `kysely-tokens.ts` have queries. They are not specific to one database; the dialect provides what is.
 */
import type { Kysely, Selectable, Transaction } from 'kysely';
import { LocalError } from '../../protocol/errors/index.ts';
import { adding, removed, type StoreDialect } from './dialect.ts';
import { KyselyInvitationStore } from './kysely-invitation-store.ts';
import { KyselyOutboundStore } from './kysely-outbound-store.ts';
import { hasToken, replaceTokens, tokensDigest } from './kysely-tokens.ts';
import type { Tables } from './schema.ts';
import type { ApiKey, App, AppChanges, AuthType, Device, JwtIssuer, Organization, Product, Store, TokenList } from './store.ts';

export class KyselyStore implements Store {
  readonly outbound: KyselyOutboundStore;
  readonly invitations: KyselyInvitationStore;
  readonly #db: Kysely<Tables>;
  readonly #dialect: StoreDialect;

  /** @param db with the tables of `schema.ts` @param dialect of its database */
  constructor(db: Kysely<Tables>, dialect: StoreDialect) {
    this.#db = db;
    this.#dialect = dialect;
    this.outbound = new KyselyOutboundStore(db, dialect);
    this.invitations = new KyselyInvitationStore(db, dialect);
  }

  async ping(): Promise<void> {
    await this.#db.selectFrom('organizations').select('organizationId').limit(1).execute();
  }

  async tryWrite(): Promise<void> {
    await this.#db
      .updateTable('kysely_migration')
      .set(({ ref }) => ({ timestamp: ref('timestamp') }))
      .execute();
  }

  organizations(): Promise<Organization[]> {
    return this.#db.selectFrom('organizations').selectAll().orderBy('created').orderBy('organizationId').execute();
  }

  async organization(organizationId: string): Promise<Organization | null> {
    const query = this.#db.selectFrom('organizations').selectAll().where('organizationId', '=', organizationId);
    return (await query.executeTakeFirst()) ?? null;
  }

  defaultOrganization(fresh: Organization): Promise<Organization> {
    return this.#db.transaction().execute(async (transaction) => {
      const all = await transaction.selectFrom('organizations').selectAll().limit(2).execute();
      if (all.length > 1) throw new LocalError('INVALID_STATE', 'there are several organizations');
      if (all[0]) return all[0];
      await transaction.insertInto('organizations').values(fresh).execute();
      return fresh;
    });
  }

  async addOrganization(organization: Organization): Promise<void> {
    await adding(this.#dialect, `organization ${organization.organizationId}`, () =>
      this.#db.insertInto('organizations').values(organization).execute(),
    );
  }

  async removeOrganization(organizationId: string): Promise<boolean> {
    return this.#changingDevices((db) => removed(db.deleteFrom('organizations').where('organizationId', '=', organizationId)));
  }

  products(organizationId?: string): Promise<Product[]> {
    const query = this.#db.selectFrom('products').selectAll().orderBy('created').orderBy('productId');
    return (organizationId === undefined ? query : query.where('organizationId', '=', organizationId)).execute();
  }

  async product(productId: string): Promise<Product | null> {
    return (await this.#db.selectFrom('products').selectAll().where('productId', '=', productId).executeTakeFirst()) ?? null;
  }

  async addProduct(product: Product): Promise<void> {
    await adding(
      this.#dialect,
      `product ${product.productId}`,
      () => this.#db.insertInto('products').values(product).execute(),
      `organization ${product.organizationId}`,
    );
  }

  async removeProduct(productId: string): Promise<boolean> {
    return this.#changingDevices((db) => removed(db.deleteFrom('products').where('productId', '=', productId)));
  }

  devices(productId?: string): Promise<Device[]> {
    const query = this.#devices().orderBy('devices.created').orderBy('deviceId');
    return (productId === undefined ? query : query.where('devices.productId', '=', productId)).execute();
  }

  async device(productId: string, deviceId: string): Promise<Device | null> {
    const query = this.#devices().where('devices.productId', '=', productId).where('deviceId', '=', deviceId);
    return (await query.executeTakeFirst()) ?? null;
  }

  devicesByFingerprint(fingerprint: string): Promise<Device[]> {
    return this.#devices().where('fingerprint', '=', fingerprint).execute();
  }

  async addDevice({ productId, deviceId, name, fingerprint, created }: Omit<Device, 'organizationId'>): Promise<void> {
    await adding(
      this.#dialect,
      `device ${deviceId} of product ${productId}`,
      () => this.#db.insertInto('devices').values({ productId, deviceId, name, fingerprint, created, tokensDigest: null }).execute(),
      `product ${productId}`,
    );
  }

  async setFingerprint(productId: string, deviceId: string, fingerprint: string | null): Promise<boolean> {
    return this.#changingDevices(async (db) => {
      const query = db.updateTable('devices').set({ fingerprint }).where('productId', '=', productId).where('deviceId', '=', deviceId);
      return (await query.executeTakeFirst()).numUpdatedRows > 0n;
    });
  }

  async removeDevice(productId: string, deviceId: string): Promise<boolean> {
    return this.#changingDevices((db) =>
      removed(db.deleteFrom('devices').where('productId', '=', productId).where('deviceId', '=', deviceId)),
    );
  }

  async devicesRevision(): Promise<number> {
    const query = this.#db.selectFrom('revisions').select('revision').where('name', '=', 'devices');
    return (await query.executeTakeFirstOrThrow()).revision;
  }

  replaceTokens(productId: string, deviceId: string, tokens: TokenList): Promise<void> {
    return replaceTokens(this.#db, { productId, deviceId }, tokens);
  }

  tokensDigest(productId: string, deviceId: string): Promise<string | null> {
    return tokensDigest(this.#db, { productId, deviceId });
  }

  hasToken(productId: string, deviceId: string, hash: string): Promise<boolean> {
    return hasToken(this.#db, { productId, deviceId }, hash);
  }

  async apps(organizationId?: string): Promise<App[]> {
    const query = this.#db.selectFrom('apps').selectAll().orderBy('created').orderBy('appId');
    const rows = await (organizationId === undefined ? query : query.where('organizationId', '=', organizationId)).execute();
    return Promise.all(rows.map((row) => this.#app(row)));
  }

  async appByKey(keyHash: string): Promise<App | null> {
    const row = await this.#db.selectFrom('apps').selectAll().where('keyHash', '=', keyHash).executeTakeFirst();
    return row ? this.#app(row) : null;
  }

  async addApp({ productIds, jwt, ...app }: App): Promise<void> {
    const missing = `organization ${app.organizationId}${productIds ? ` or one of the products ${productIds.join(', ')}` : ''}`;
    const insert = async (transaction: Transaction<Tables>): Promise<void> => {
      await transaction
        .insertInto('apps')
        .values({ ...app, ...jwtColumns(jwt), allProducts: productIds ? 0 : 1 })
        .execute();
      const rows = [...new Set(productIds)].map((productId) => ({ appId: app.appId, productId }));
      if (rows.length > 0) await transaction.insertInto('appProducts').values(rows).execute();
    };
    await adding(this.#dialect, `server key ${app.appId}`, () => this.#db.transaction().execute(insert), missing);
  }

  async updateApp(appId: string, changes: AppChanges): Promise<boolean> {
    const { name, authType, jwt } = changes;
    const query = this.#db
      .updateTable('apps')
      .set({ name, authType, ...jwtColumns(jwt) })
      .where('appId', '=', appId);
    return (await query.executeTakeFirst()).numUpdatedRows > 0n;
  }

  async removeApp(appId: string): Promise<boolean> {
    return removed(this.#db.deleteFrom('apps').where('appId', '=', appId));
  }

  async apiKeys(organizationId?: string): Promise<ApiKey[]> {
    const query = this.#db.selectFrom('apiKeys').selectAll().orderBy('created').orderBy('apikeyId');
    return (await (organizationId === undefined ? query : query.where('organizationId', '=', organizationId)).execute()).map(apiKeyOf);
  }

  async apiKey(apikeyId: string): Promise<ApiKey | null> {
    const row = await this.#db.selectFrom('apiKeys').selectAll().where('apikeyId', '=', apikeyId).executeTakeFirst();
    return row ? apiKeyOf(row) : null;
  }

  async apiKeyHash(apikeyId: string): Promise<string | null> {
    const row = await this.#db.selectFrom('apiKeys').select('secretHash').where('apikeyId', '=', apikeyId).executeTakeFirst();
    return row?.secretHash ?? null;
  }

  async addApiKey(key: ApiKey, secretHash: string): Promise<void> {
    const row = {
      ...key,
      secretHash,
      enforceIpWhitelist: Number(key.enforceIpWhitelist),
      isAdmin: Number(key.isAdmin),
      actions: JSON.stringify(key.actions),
      ipWhiteList: JSON.stringify(key.ipWhiteList),
    };
    const insert = () => this.#db.insertInto('apiKeys').values(row).execute();
    await adding(this.#dialect, `API key ${key.apikeyId}`, insert, `organization ${key.organizationId}`);
  }

  async removeApiKey(apikeyId: string): Promise<boolean> {
    return removed(this.#db.deleteFrom('apiKeys').where('apikeyId', '=', apikeyId));
  }

  async close(): Promise<void> {
    await this.#db.destroy();
  }

  /** Runs a change that may remove devices or replace their keys; counts it if it changed something. */
  #changingDevices(change: (db: Transaction<Tables>) => Promise<boolean>): Promise<boolean> {
    return this.#db.transaction().execute(async (transaction) => {
      const changed = await change(transaction);
      const count = transaction.updateTable('revisions').set(({ eb }) => ({ revision: eb('revision', '+', 1) }));
      if (changed) await count.where('name', '=', 'devices').execute();
      return changed;
    });
  }

  #devices() {
    return this.#db
      .selectFrom('devices')
      .innerJoin('products', 'products.productId', 'devices.productId')
      .select(['devices.productId', 'deviceId', 'organizationId', 'devices.name', 'fingerprint', 'devices.created']);
  }

  async #app({ allProducts, authType, ...row }: Selectable<Tables['apps']>): Promise<App> {
    const rows = await this.#db.selectFrom('appProducts').select('productId').where('appId', '=', row.appId).execute();
    const { jwtIssuer: issuer, jwtAudience: audience, jwtAudienceClaim: audienceClaim, jwtJwksUri: jwksUri, ...rest } = row;
    const { jwtSvcIdsClaim: svcIdsClaim, ...app } = rest;
    const isWhole = issuer !== null && audience !== null && audienceClaim !== null && jwksUri !== null && svcIdsClaim !== null;
    const jwt = isWhole ? { issuer, audience, audienceClaim, jwksUri, svcIdsClaim } : null;
    return { ...app, authType: authType as AuthType, jwt, productIds: allProducts ? null : rows.map(({ productId }) => productId) };
  }
}

function jwtColumns(jwt: JwtIssuer | null) {
  const { issuer = null, audience = null, audienceClaim = null, jwksUri = null, svcIdsClaim = null } = jwt ?? {};
  return {
    jwtIssuer: issuer,
    jwtAudience: audience,
    jwtAudienceClaim: audienceClaim,
    jwtJwksUri: jwksUri,
    jwtSvcIdsClaim: svcIdsClaim,
  };
}

function apiKeyOf({ secretHash: _, ...row }: Selectable<Tables['apiKeys']>): ApiKey {
  return {
    ...row,
    enforceIpWhitelist: row.enforceIpWhitelist !== 0,
    isAdmin: row.isAdmin !== 0,
    actions: JSON.parse(row.actions) as string[],
    ipWhiteList: JSON.parse(row.ipWhiteList) as ApiKey['ipWhiteList'],
  };
}
