/**
 * The tables, and the migration that creates them, in one transaction.
 *
 * Until 0.1.0 is tagged, a change of a stored format edits `0001-schema`, without migration and compatible reading.
 * From the tag on a change is a further migration, named by its number.
 *
 * Column types are the common ground of SQLite and Postgres; booleans are integers and lists are JSON text.
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
    jwtAudienceClaim: string | null;
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

/** The migration that every database of this schema has. */
export const SCHEMA = '0001-schema';

/** Migrations by name, in the order in which they run. */
export const migrations: Readonly<Record<string, Migration>> = { [SCHEMA]: { up: createTables } };

async function createTables(db: Kysely<unknown>): Promise<void> {
  await organizations(db);
  await devices(db);
  await apps(db);
  await apiKeys(db);
  await pushCredentials(db);
  await services(db);
  await invitations(db);
}

async function organizations(db: Kysely<unknown>): Promise<void> {
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
}

async function devices(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('devices')
    .addColumn('productId', 'text', (column) => column.notNull().references('products.productId').onDelete('cascade'))
    .addColumn('deviceId', 'text', (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('fingerprint', 'text')
    .addColumn('created', 'text', (column) => column.notNull())
    .addColumn('tokensDigest', 'text')
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
  await db.schema
    .createTable('revisions')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .execute();
  await (db as Kysely<Tables>).insertInto('revisions').values({ name: 'devices', revision: 0 }).execute();
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
    .addColumn('jwtIssuer', 'text')
    .addColumn('jwtAudience', 'text')
    .addColumn('jwtAudienceClaim', 'text')
    .addColumn('jwtJwksUri', 'text')
    .addColumn('jwtSvcIdsClaim', 'text')
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

async function pushCredentials(db: Kysely<unknown>): Promise<void> {
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
}

async function services(db: Kysely<unknown>): Promise<void> {
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
