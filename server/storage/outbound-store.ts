/**
 * What devices may reach outside through the base station: push credentials and services, each of one organization.
 *
 * Keys are given and kept sealed (`sealing.ts`): who has only the database has none of them.
 */

/** A service account of the push provider, for one project. */
export interface PushCredential {
  organizationId: string;
  /** Project id at the provider. */
  projectId: string;
  /** Who the service account is. */
  clientEmail: string;
  /** The provider's name of the key, if the account file has one. */
  keyId: string | null;
  /** RSA private key, PKCS#8 PEM, sealed. */
  sealedKey: string;
  /** Where access tokens come from. */
  tokenUrl: string;
  /** Origin of the provider's HTTP v1 interface, without a slash at its end. */
  baseUrl: string;
  created: string;
}

/** An HTTP endpoint that devices of some products may invoke. */
export interface Service {
  serviceId: string;
  organizationId: string;
  name: string | null;
  url: string;
  /** What requests are signed with (`whsec_…`), sealed. */
  sealedSecret: string;
  /** ms an invocation may take. */
  timeout: number;
  /** The operator allows private and loopback addresses, and `http:`. */
  allowPrivate: boolean;
  created: string;
}

/** The part of the storage that outbound calls need. All `add…` and `remove…` as those of Store. */
export interface OutboundStore {
  pushCredentials(organizationId?: string): Promise<PushCredential[]>;
  pushCredential(organizationId: string, projectId: string): Promise<PushCredential | null>;
  addPushCredential(credential: PushCredential): Promise<void>;
  removePushCredential(organizationId: string, projectId: string): Promise<boolean>;

  services(organizationId?: string): Promise<Service[]>;
  service(serviceId: string): Promise<Service | null>;
  /** The service, when it is attached to the product. */
  serviceOfProduct(serviceId: string, productId: string): Promise<Service | null>;
  /** Attached to the products, or not added at all. */
  addService(service: Service, productIds?: readonly string[]): Promise<void>;
  removeService(serviceId: string): Promise<boolean>;
  /** Products the service is attached to. */
  productsOfService(serviceId: string): Promise<string[]>;
  /** Attached already: nothing happens. @throws LocalError NOT_FOUND unless both exist in one organization */
  attachService(serviceId: string, productId: string): Promise<void>;
  /** False when it was not attached. */
  detachService(serviceId: string, productId: string): Promise<boolean>;
}
