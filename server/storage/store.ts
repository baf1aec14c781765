/**
 * The storage of the base station, and the only access to it.
 *
 * Records are plain objects; every call is asynchronous, so that a shared Postgres can implement the same interface as
 * the SQLite file. The store never sees secrets: server keys, SCTs and API key secrets are passed and stored as SHA-256
 * (64 lower-case hex, `secrets.ts`), keys that must be readable again are passed and stored sealed (`sealing.ts`).
 * Another process may change rows at any time: callers read them at each use and keep no copies.
 *
 * Presence of attached devices is not here: it lives in memory at the station.
 */
import type { InvitationStore } from './invitation-store.ts';
import type { OutboundStore } from './outbound-store.ts';

/** Owner of products and keys. */
export interface Organization {
  organizationId: string;
  name: string | null;
  /** ISO 8601 UTC with milliseconds, as every `created`. */
  created: string;
}

/** A kind of device. */
export interface Product {
  productId: string;
  organizationId: string;
  name: string | null;
  created: string;
}

/** One device of a product. */
export interface Device {
  productId: string;
  deviceId: string;
  organizationId: string;
  name: string | null;
  /** Full hex fingerprint of the device's public key; null while unknown: such a device cannot attach. */
  fingerprint: string | null;
  created: string;
}

/** The SCTs of a device. */
export interface TokenList {
  /** SHA-256 of each token. */
  hashes: readonly string[];
  /** Digest of the list (`digestOfTokenHashes`), 64 lower-case hex. */
  digest: string;
}

/** NONE: the key alone admits. JWT: a token of the app's issuer is needed as well. */
export type AuthType = 'NONE' | 'JWT';

/** The issuer of the tokens that an app of type JWT asks for, and their required claims (RFC 7519). */
export interface JwtIssuer {
  /** `iss` of its tokens. */
  issuer: string;
  /** A value of its tokens' `audienceClaim`. */
  audience: string;
  /** Name of the claim that names whom a token is for: `aud`, or `client_id` where an issuer sends no `aud`. */
  audienceClaim: string;
  /** https URL of its JWK Set (RFC 7517). */
  jwksUri: string;
  /** Name of the claim that lists devices as `<productId>.<deviceId>`. */
  svcIdsClaim: string;
}

/** A server key, and the devices it admits to. */
export interface App {
  appId: string;
  organizationId: string;
  name: string | null;
  authType: AuthType;
  /** Null unless the type is JWT. */
  jwt: JwtIssuer | null;
  /** SHA-256 of the server key (`sk-…`). */
  keyHash: string;
  /** The products that the key opens; null: every product of its organization. */
  productIds: string[] | null;
  created: string;
}

/** The members of a server key that can be changed. */
export type AppChanges = Pick<App, 'name' | 'authType' | 'jwt'>;

/** An API key of docs/rest.md; the field names are those of its JSON. */
export interface ApiKey {
  organizationId: string;
  apikeyId: string;
  name: string;
  enforceIpWhitelist: boolean;
  isAdmin: boolean;
  actions: string[];
  ipWhiteList: { ip: string; name?: string }[];
  created: string;
}

/** The storage of a base station. */
export interface Store {
  /** Push credentials and services, which devices use through the base station. */
  readonly outbound: OutboundStore;
  /** Invitations, with which devices join. */
  readonly invitations: InvitationStore;

  /** Rejects when the storage cannot answer: for the health check. */
  ping(): Promise<void>;
  /** Rewrites existing data. Rejects when the storage accepts no writes: a full or read-only disk. */
  tryWrite(): Promise<void>;

  organizations(): Promise<Organization[]>;
  organization(organizationId: string): Promise<Organization | null>;
  /**
   * Returns the only organization; creates it under the given id and name when there is none yet.
   * @throws LocalError INVALID_STATE when there are several
   */
  defaultOrganization(fresh: Organization): Promise<Organization>;
  /** All `add…`: @throws LocalError INVALID_STATE when the id is taken, NOT_FOUND when the record's owner is missing */
  addOrganization(organization: Organization): Promise<void>;
  /** All `remove…` return false when there was no such record, and remove everything that belongs to the record. */
  removeOrganization(organizationId: string): Promise<boolean>;

  products(organizationId?: string): Promise<Product[]>;
  product(productId: string): Promise<Product | null>;
  addProduct(product: Product): Promise<void>;
  removeProduct(productId: string): Promise<boolean>;

  devices(productId?: string): Promise<Device[]>;
  device(productId: string, deviceId: string): Promise<Device | null>;
  devicesByFingerprint(fingerprint: string): Promise<Device[]>;
  addDevice(device: Omit<Device, 'organizationId'>): Promise<void>;
  /** Returns false when there is no such device. */
  setFingerprint(productId: string, deviceId: string, fingerprint: string | null): Promise<boolean>;
  removeDevice(productId: string, deviceId: string): Promise<boolean>;
  /** Grows with every change, by any process, that removes a device or gives it another key. */
  devicesRevision(): Promise<number>;

  /** Replaces all SCTs of a device; durable when it resolves. @throws LocalError NOT_FOUND */
  replaceTokens(productId: string, deviceId: string, tokens: TokenList): Promise<void>;
  /** Digest of the device's SCTs; null before the first list, or without the device. */
  tokensDigest(productId: string, deviceId: string): Promise<string | null>;
  /** Returns whether the device has an SCT of that hash. Takes as long with many as with one. */
  hasToken(productId: string, deviceId: string, hash: string): Promise<boolean>;

  apps(organizationId?: string): Promise<App[]>;
  appByKey(keyHash: string): Promise<App | null>;
  addApp(app: App): Promise<void>;
  /** Returns false when there is no such app. */
  updateApp(appId: string, changes: AppChanges): Promise<boolean>;
  removeApp(appId: string): Promise<boolean>;

  apiKeys(organizationId?: string): Promise<ApiKey[]>;
  apiKey(apikeyId: string): Promise<ApiKey | null>;
  /** Returns the SHA-256 of the key's secret. */
  apiKeyHash(apikeyId: string): Promise<string | null>;
  addApiKey(key: ApiKey, secretHash: string): Promise<void>;
  removeApiKey(apikeyId: string): Promise<boolean>;

  close(): Promise<void>;
}
