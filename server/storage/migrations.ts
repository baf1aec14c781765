/**
 * The tables, and the migrations of older databases.
 *
 * Each migration is named by its number, is never edited after a release, and runs in one transaction. Column types are
 * the common ground of SQLite and Postgres; booleans are integers and lists are JSON text.
 */
import type { Generated, Kysely, Migration } from 'kysely';
import type { PushCredential, Service } from './outbound-store.ts';

export interface Tables {
  organizations: { organizationId: string; name: string | null; created: string };
  products: { productId: string; organizationId: string; name: string | null; created: string };
  devices: {
    productId: string;
    deviceId: string;
    name: string | null;
    fingerprint: string | null;
    created: string;
    tokensDigest: string | null;
  };
  /** Counters of changes; `devices` is the only one. */
  revisions: { name: string; revision: number };
  deviceTokens: { productId: string; deviceId: string; hash: string };
  apps: {
    appId: string;
    organizationId: string;
    name: string | null;
    authType: string;
    keyHash: string;
    allProducts: number;
    created: string;
    jwtIssuer: string | null;
    jwtAudience: string | null;
    jwtJwksUri: string | null;
    jwtSvcIdsClaim: string | null;
  };
  appProducts: { appId: string; productId: string };
  apiKeys: {
    apikeyId: string;
    organizationId: string;
    name: string;
    secretHash: string;
    enforceIpWhitelist: number;
    isAdmin: number;
    actions: string;
    ipWhiteList: string;
    created: string;
  };
  pushCredentials: PushCredential;
  services: Omit<Service, 'allowPrivate'> & { allowPrivate: number };
  serviceProducts: { serviceId: string; productId: string };
  invitations: {
    tokenHash: string;
    productId: string;
    deviceId: string | null;
    expires: string;
    maker: string;
    created: string;
    revoked: number;
    usedDeviceId: string | null;
    usedFingerprint: string | null;
    usedAddress: string | null;
    usedTime: string | null;
  };
  /** Kysely's own list of migrations that have run. */
  kysely_migration: { name: string; timestamp: Generated<string> };
}

/** Migrations by name, in the order in which they run. */
export const migrations: Readonly<Record<string, Migration>> = {
  '0001-first': { up: first },
  '0002-outbound': { up: outbound },
  '0003-tokens-digest': { up: tokensDigest },
  '0004-revisions': { up: revisions },
  '0005-jwt': { up: jwt },
  '0006-invitations': { up: invitations },
};

async function first(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('organizations')
    .addColumn('organizationId', 'text', (column) => column.primaryKey())
    .addColumn('name', 'text')
    .addColumn('created', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('products')
    .addColumn('productId', 'text', (column) => column.primaryKey())
    .addColumn('organizationId', 'text', (column) => column.notNull().references('organizations.organizationId').onDelete('cascade'))
    .addColumn('name', 'text')
    .addColumn('created', 'text', (column) => column.notNull())
    .execute();
  await devices(db);
  await apps(db);
  await apiKeys(db);
}

async function devices(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('devices')
    .addColumn('productId', 'text', (column) => column.notNull().references('products.productId').onDelete('cascade'))
    .addColumn('deviceId', 'text', (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('fingerprint', 'text')
    .addColumn('created', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('devicesKey', ['productId', 'deviceId'])
    .execute();
  await db.schema.createIndex('devicesByFingerprint').on('devices').column('fingerprint').execute();
  await db.schema
    .createTable('deviceTokens')
    .addColumn('productId', 'text', (column) => column.notNull())
    .addColumn('deviceId', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('deviceTokensKey', ['productId', 'deviceId', 'hash'])
    .addForeignKeyConstraint('deviceTokensDevice', ['productId', 'deviceId'], 'devices', ['productId', 'deviceId'], (constraint) =>
      constraint.onDelete('cascade'),
    )
    .execute();
}

async function apps(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('apps')
    .addColumn('appId', 'text', (column) => column.primaryKey())
    .addColumn('organizationId', 'text', (column) => column.notNull().references('organizations.organizationId').onDelete('cascade'))
    .addColumn('name', 'text')
    .addColumn('authType', 'text', (column) => column.notNull())
    .addColumn('keyHash', 'text', (column) => column.notNull().unique())
    .addColumn('allProducts', 'integer', (column) => column.notNull())
    .addColumn('created', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('appProducts')
    .addColumn('appId', 'text', (column) => column.notNull().references('apps.appId').onDelete('cascade'))
    .addColumn('productId', 'text', (column) => column.notNull().references('products.productId').onDelete('cascade'))
    .addPrimaryKeyConstraint('appProductsKey', ['appId', 'productId'])
    .execute();
}

async function apiKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('apiKeys')
    .addColumn('apikeyId', 'text', (column) => column.primaryKey())
    .addColumn('organizationId', 'text', (column) => column.notNull().references('organizations.organizationId').onDelete('cascade'))
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('secretHash', 'text', (column) => column.notNull())
    .addColumn('enforceIpWhitelist', 'integer', (column) => column.notNull())
    .addColumn('isAdmin', 'integer', (column) => column.notNull())
    .addColumn('actions', 'text', (column) => column.notNull())
    .addColumn('ipWhiteList', 'text', (column) => column.notNull())
    .addColumn('created', 'text', (column) => column.notNull())
    .execute();
}

/** Adds the tables of push credentials and services. */
async function outbound(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('pushCredentials')
    .addColumn('organizationId', 'text', (column) => column.notNull().references('organizations.organizationId').onDelete('cascade'))
    .addColumn('projectId', 'text', (column) => column.notNull())
    .addColumn('clientEmail', 'text', (column) => column.notNull())
    .addColumn('keyId', 'text')
    .addColumn('sealedKey', 'text', (column) => column.notNull())
    .addColumn('tokenUrl', 'text', (column) => column.notNull())
    .addColumn('baseUrl', 'text', (column) => column.notNull())
    .addColumn('created', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('pushCredentialsKey', ['organizationId', 'projectId'])
    .execute();
  await db.schema
    .createTable('services')
    .addColumn('serviceId', 'text', (column) => column.primaryKey())
    .addColumn('organizationId', 'text', (column) => column.notNull().references('organizations.organizationId').onDelete('cascade'))
    .addColumn('name', 'text')
    .addColumn('url', 'text', (column) => column.notNull())
    .addColumn('sealedSecret', 'text', (column) => column.notNull())
    .addColumn('timeout', 'integer', (column) => column.notNull())
    .addColumn('allowPrivate', 'integer', (column) => column.notNull())
    .addColumn('created', 'text', (column) => column.notNull())
    .execute();
  await db.schema
    .createTable('serviceProducts')
    .addColumn('serviceId', 'text', (column) => column.notNull().references('services.serviceId').onDelete('cascade'))
    .addColumn('productId', 'text', (column) => column.notNull().references('products.productId').onDelete('cascade'))
    .addPrimaryKeyConstraint('serviceProductsKey', ['serviceId', 'productId'])
    .execute();
}

/** Null until the device uploads its next list: the digest of the existing list is not computed here. */
async function tokensDigest(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('devices').addColumn('tokensDigest', 'text').execute();
}

async function revisions(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('revisions')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .execute();
  await (db as Kysely<Tables>).insertInto('revisions').values({ name: 'devices', revision: 0 }).execute();
}

/** The issuer of an app's tokens; null in an app that admits by its key alone. */
async function jwt(db: Kysely<unknown>): Promise<void> {
  // SQLite adds one column at a time.
  for (const column of ['jwtIssuer', 'jwtAudience', 'jwtJwksUri', 'jwtSvcIdsClaim'])
    await db.schema.alterTable('apps').addColumn(column, 'text').execute();
}

/** Invitations of devices; the record of the device that used one stays when that device is removed. */
async function invitations(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('invitations')
    .addColumn('tokenHash', 'text', (column) => column.primaryKey())
    .addColumn('productId', 'text', (column) => column.notNull().references('products.productId').onDelete('cascade'))
    .addColumn('deviceId', 'text')
    .addColumn('expires', 'text', (column) => column.notNull())
    .addColumn('maker', 'text', (column) => column.notNull())
    .addColumn('created', 'text', (column) => column.notNull())
    .addColumn('revoked', 'integer', (column) => column.notNull())
    .addColumn('usedDeviceId', 'text')
    .addColumn('usedFingerprint', 'text')
    .addColumn('usedAddress', 'text')
    .addColumn('usedTime', 'text')
    .execute();
  await db.schema.createIndex('invitationsByProduct').on('invitations').column('productId').execute();
}
