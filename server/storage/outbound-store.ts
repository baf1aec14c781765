/**
 * Push credentials and services, which devices use through the base station; each belongs to one organization.
 *
 * Keys are passed and stored sealed (`sealing.ts`): the database alone reveals none of them.
 */

/** A service account of the push provider, for one project. */
export interface PushCredential {
  organizationId: string;
  /** Project id at the provider. */
  projectId: string;
  /** Identity of the service account. */
  clientEmail: string;
  /** The provider's name of the key, if the account file has one. */
  keyId: string | null;
  /** RSA private key, PKCS#8 PEM, sealed. */
  sealedKey: string;
  /** URL of the endpoint for access tokens. */
  tokenUrl: string;
  /** Origin of the provider's HTTP v1 interface, without a trailing slash. */
  baseUrl: string;
  created: string;
}

/** An HTTP endpoint that devices of some products may invoke. */
export interface Service {
  serviceId: string;
  organizationId: string;
  name: string | null;
  url: string;
  /** Secret that signs requests (`whsec_…`), sealed. */
  sealedSecret: string;
  /** ms that an invocation may take. */
  timeout: number;
  /** The operator allows private and loopback addresses, and `http:`. */
  allowPrivate: boolean;
  created: string;
}

/** The part of the storage that outbound calls need. All `add…` and `remove…` behave as those of Store. */
export interface OutboundStore {
  pushCredentials(organizationId?: string): Promise<PushCredential[]>;
  pushCredential(organizationId: string, projectId: string): Promise<PushCredential | null>;
  addPushCredential(credential: PushCredential): Promise<void>;
  removePushCredential(organizationId: string, projectId: string): Promise<boolean>;

  services(organizationId?: string): Promise<Service[]>;
  service(serviceId: string): Promise<Service | null>;
  /** Returns the service if it is attached to the product. */
  serviceOfProduct(serviceId: string, productId: string): Promise<Service | null>;
  /** Adds it attached to the products, or not at all. */
  addService(service: Service, productIds?: readonly string[]): Promise<void>;
  removeService(serviceId: string): Promise<boolean>;
  /** Returns the products to which the service is attached. */
  productsOfService(serviceId: string): Promise<string[]>;
  /**
   * Attaches a service; does nothing when it is already attached.
   * @throws LocalError NOT_FOUND unless both exist in one organization
   */
  attachService(serviceId: string, productId: string): Promise<void>;
  /** Returns false when it was not attached. */
  detachService(serviceId: string, productId: string): Promise<boolean>;
}
