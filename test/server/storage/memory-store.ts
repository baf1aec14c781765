/** The base station's storage in maps: a second implementation of `Store`, and a simple model of the first. */
import { LocalError } from '../../../protocol/errors/index.ts';
import type { Invitation, InvitationStore, NewInvitation, Redemption, TimeShift } from '../../../server/storage/invitation-store.ts';
import type { OutboundStore, PushCredential, Service } from '../../../server/storage/outbound-store.ts';
import type { ApiKey, App, AppChanges, Device, Organization, Product, Store, TokenList } from '../../../server/storage/store.ts';

type Owned = { organizationId: string };

const of = <Item>(items: Map<string, Item>, matches: (item: Item) => boolean): Item[] =>
  structuredClone([...items.values()].filter(matches));
const inOrganization =
  (organizationId: string | undefined) =>
  (item: Owned): boolean =>
    organizationId === undefined || item.organizationId === organizationId;

/** All rows: `null` of a lookup stands for none. */
export class MemoryStore implements Store {
  readonly outbound: MemoryOutboundStore;
  readonly invitations = new MemoryInvitationStore(this);
  readonly #organizations = new Map<string, Organization>();
  readonly #products = new Map<string, Product>();
  readonly #devices = new Map<string, Omit<Device, 'organizationId'>>();
  readonly #tokens = new Map<string, TokenList>();
  readonly #apps = new Map<string, App>();
  readonly #apiKeys = new Map<string, ApiKey & { secretHash: string }>();

  constructor() {
    this.outbound = new MemoryOutboundStore(this.#organizations, this.#products);
  }

  async ping(): Promise<void> {}

  #revision = 0;

  async tryWrite(): Promise<void> {}

  async devicesRevision(): Promise<number> {
    return this.#revision;
  }

  async organizations(): Promise<Organization[]> {
    return of(this.#organizations, () => true);
  }

  async organization(organizationId: string): Promise<Organization | null> {
    return this.#organizations.get(organizationId) ?? null;
  }

  async defaultOrganization(fresh: Organization): Promise<Organization> {
    if (this.#organizations.size > 1) throw new LocalError('INVALID_STATE', 'there are several organizations');
    const [only] = this.#organizations.values();
    if (only === undefined) this.#organizations.set(fresh.organizationId, fresh);
    return only ?? fresh;
  }

  async addOrganization(organization: Organization): Promise<void> {
    refuseTaken(this.#organizations, organization.organizationId, `organization ${organization.organizationId}`);
    this.#organizations.set(organization.organizationId, organization);
  }

  async removeOrganization(organizationId: string): Promise<boolean> {
    for (const { productId } of of(this.#products, inOrganization(organizationId))) await this.removeProduct(productId);
    for (const { appId } of of(this.#apps, inOrganization(organizationId))) this.#apps.delete(appId);
    for (const { apikeyId } of of(this.#apiKeys, inOrganization(organizationId))) this.#apiKeys.delete(apikeyId);
    this.outbound.removeOrganization(organizationId);
    return this.#organizations.delete(organizationId);
  }

  async products(organizationId?: string): Promise<Product[]> {
    return of(this.#products, inOrganization(organizationId));
  }

  async product(productId: string): Promise<Product | null> {
    return this.#products.get(productId) ?? null;
  }

  async addProduct(product: Product): Promise<void> {
    refuseTaken(this.#products, product.productId, `product ${product.productId}`);
    expectOwner(this.#organizations, product.organizationId);
    this.#products.set(product.productId, product);
  }

  async removeProduct(productId: string): Promise<boolean> {
    for (const device of await this.devices(productId)) await this.removeDevice(productId, device.deviceId);
    for (const app of this.#apps.values()) app.productIds = app.productIds?.filter((each) => each !== productId) ?? null;
    this.outbound.removeProduct(productId);
    this.invitations.removeProduct(productId);
    return this.#products.delete(productId);
  }

  async devices(productId?: string): Promise<Device[]> {
    return this.#devicesWhere((device) => productId === undefined || device.productId === productId);
  }

  async device(productId: string, deviceId: string): Promise<Device | null> {
    return this.#devicesWhere((device) => device.productId === productId && device.deviceId === deviceId)[0] ?? null;
  }

  async devicesByFingerprint(fingerprint: string): Promise<Device[]> {
    return this.#devicesWhere((device) => device.fingerprint === fingerprint);
  }

  async addDevice(device: Omit<Device, 'organizationId'>): Promise<void> {
    const { productId, deviceId } = device;
    refuseTaken(this.#devices, `${productId}.${deviceId}`, `device ${deviceId} of product ${productId}`);
    if (!this.#products.has(productId)) throw new LocalError('NOT_FOUND', `there is no product ${productId}`);
    this.#devices.set(`${productId}.${deviceId}`, device);
  }

  async setFingerprint(productId: string, deviceId: string, fingerprint: string | null): Promise<boolean> {
    const device = this.#devices.get(`${productId}.${deviceId}`);
    if (device === undefined) return false;
    device.fingerprint = fingerprint;
    this.#revision++;
    return true;
  }

  async removeDevice(productId: string, deviceId: string): Promise<boolean> {
    this.#tokens.delete(`${productId}.${deviceId}`);
    if (!this.#devices.delete(`${productId}.${deviceId}`)) return false;
    this.#revision++;
    return true;
  }

  async replaceTokens(productId: string, deviceId: string, tokens: TokenList): Promise<void> {
    const name = `${productId}.${deviceId}`;
    if (!this.#devices.has(name)) throw new LocalError('NOT_FOUND', `there is no device ${deviceId} of product ${productId}`);
    this.#tokens.set(name, tokens);
  }

  async tokensDigest(productId: string, deviceId: string): Promise<string | null> {
    return this.#tokens.get(`${productId}.${deviceId}`)?.digest ?? null;
  }

  async hasToken(productId: string, deviceId: string, hash: string): Promise<boolean> {
    return this.#tokens.get(`${productId}.${deviceId}`)?.hashes.includes(hash) ?? false;
  }

  async apps(organizationId?: string): Promise<App[]> {
    return of(this.#apps, inOrganization(organizationId));
  }

  async appByKey(keyHash: string): Promise<App | null> {
    return of(this.#apps, (app) => app.keyHash === keyHash)[0] ?? null;
  }

  async addApp(app: App): Promise<void> {
    const isTaken = this.#apps.has(app.appId) || (await this.appByKey(app.keyHash)) !== null;
    if (isTaken) throw new LocalError('INVALID_STATE', `server key ${app.appId} exists already`);
    const isOwned = this.#organizations.has(app.organizationId) && (app.productIds ?? []).every((each) => this.#products.has(each));
    const products = app.productIds ? ` or one of the products ${app.productIds.join(', ')}` : '';
    if (!isOwned) throw new LocalError('NOT_FOUND', `there is no organization ${app.organizationId}${products}`);
    this.#apps.set(app.appId, structuredClone(app));
  }

  async updateApp(appId: string, changes: AppChanges): Promise<boolean> {
    const app = this.#apps.get(appId);
    if (app !== undefined) this.#apps.set(appId, { ...app, ...structuredClone(changes) });
    return app !== undefined;
  }

  async removeApp(appId: string): Promise<boolean> {
    return this.#apps.delete(appId);
  }

  async apiKeys(organizationId?: string): Promise<ApiKey[]> {
    return of(this.#apiKeys, inOrganization(organizationId)).map(({ secretHash: _, ...key }) => key);
  }

  async apiKey(apikeyId: string): Promise<ApiKey | null> {
    return (await this.apiKeys()).find((key) => key.apikeyId === apikeyId) ?? null;
  }

  async apiKeyHash(apikeyId: string): Promise<string | null> {
    return this.#apiKeys.get(apikeyId)?.secretHash ?? null;
  }

  async addApiKey(key: ApiKey, secretHash: string): Promise<void> {
    refuseTaken(this.#apiKeys, key.apikeyId, `API key ${key.apikeyId}`);
    expectOwner(this.#organizations, key.organizationId);
    this.#apiKeys.set(key.apikeyId, { ...key, secretHash });
  }

  async removeApiKey(apikeyId: string): Promise<boolean> {
    return this.#apiKeys.delete(apikeyId);
  }

  async close(): Promise<void> {}

  #devicesWhere(matches: (device: Omit<Device, 'organizationId'>) => boolean): Device[] {
    return of(this.#devices, matches).map(({ productId, deviceId, ...rest }) => {
      const { organizationId } = this.#products.get(productId)!;
      return { productId, deviceId, organizationId, ...rest };
    });
  }
}

class MemoryInvitationStore implements InvitationStore {
  readonly #store: MemoryStore;
  #all: Invitation[] = [];

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  removeProduct(productId: string): void {
    this.#all = this.#all.filter((each) => each.productId !== productId);
  }

  async all(): Promise<Invitation[]> {
    return structuredClone(this.#all);
  }

  async find(tokenHash: string): Promise<Invitation | null> {
    return structuredClone(this.#all.find((each) => each.tokenHash === tokenHash) ?? null);
  }

  async add(invitation: NewInvitation, limit: number): Promise<boolean> {
    const { productId, created } = invitation;
    if (this.#all.filter((each) => each.productId === productId && isOpen(each, created)).length >= limit) return false;
    if ((await this.#store.product(productId)) === null) throw new LocalError('NOT_FOUND', `there is no product ${productId}`);
    this.#all.push({ ...invitation, revoked: false, use: null });
    return true;
  }

  async redeem({ tokenHash, ...use }: Redemption): Promise<'joined' | 'taken' | 'closed'> {
    const invitation = this.#all.find((each) => each.tokenHash === tokenHash);
    if (invitation === undefined || !isOpen(invitation, use.time)) return 'closed';
    const { productId } = invitation;
    const { deviceId, fingerprint, time } = use;
    const device = await this.#store.device(productId, deviceId);
    const mayBind = device?.fingerprint === fingerprint || (device?.fingerprint === null && invitation.deviceId !== null);
    if (device !== null && !mayBind) return 'taken';
    invitation.use = use;
    if (device !== null) await this.#store.setFingerprint(productId, deviceId, fingerprint);
    else await this.#store.addDevice({ productId, deviceId, name: null, fingerprint, created: time });
    return 'joined';
  }

  async revoke(tokenHash: string): Promise<boolean> {
    const invitation = this.#all.find((each) => each.tokenHash === tokenHash && each.use === null);
    if (invitation !== undefined) invitation.revoked = true;
    return invitation !== undefined;
  }

  async shift({ from, to, by }: TimeShift): Promise<void> {
    const later = (time: string): string => new Date(Date.parse(time) + by).toISOString();
    this.#all = this.#all.map((each) => {
      if (each.created < from || each.created > to) return each;
      const use = each.use && { ...each.use, time: later(each.use.time) };
      return { ...each, created: later(each.created), expires: later(each.expires), use };
    });
  }

  async forget(now: string, usedBefore: string): Promise<void> {
    this.#all = this.#all.filter(({ use, expires }) => (use === null ? expires > now : use.time >= usedBefore));
  }
}

function isOpen({ use, revoked, expires }: Invitation, now: string): boolean {
  return use === null && !revoked && expires > now;
}

class MemoryOutboundStore implements OutboundStore {
  readonly #organizations: ReadonlyMap<string, Organization>;
  readonly #products: ReadonlyMap<string, Product>;
  readonly #credentials = new Map<string, PushCredential>();
  readonly #services = new Map<string, Service>();
  readonly #attached = new Map<string, Set<string>>();

  constructor(organizations: ReadonlyMap<string, Organization>, products: ReadonlyMap<string, Product>) {
    this.#organizations = organizations;
    this.#products = products;
  }

  removeOrganization(organizationId: string): void {
    for (const { projectId } of of(this.#credentials, inOrganization(organizationId)))
      void this.removePushCredential(organizationId, projectId);
    for (const { serviceId } of of(this.#services, inOrganization(organizationId))) void this.removeService(serviceId);
  }

  removeProduct(productId: string): void {
    for (const products of this.#attached.values()) products.delete(productId);
  }

  async pushCredentials(organizationId?: string): Promise<PushCredential[]> {
    return of(this.#credentials, inOrganization(organizationId));
  }

  async pushCredential(organizationId: string, projectId: string): Promise<PushCredential | null> {
    return this.#credentials.get(`${organizationId} ${projectId}`) ?? null;
  }

  async addPushCredential(credential: PushCredential): Promise<void> {
    const { organizationId, projectId } = credential;
    refuseTaken(this.#credentials, `${organizationId} ${projectId}`, `push credential of project ${projectId}`);
    expectOwner(this.#organizations, organizationId);
    this.#credentials.set(`${organizationId} ${projectId}`, credential);
  }

  async removePushCredential(organizationId: string, projectId: string): Promise<boolean> {
    return this.#credentials.delete(`${organizationId} ${projectId}`);
  }

  async services(organizationId?: string): Promise<Service[]> {
    return of(this.#services, inOrganization(organizationId));
  }

  async service(serviceId: string): Promise<Service | null> {
    return this.#services.get(serviceId) ?? null;
  }

  async serviceOfProduct(serviceId: string, productId: string): Promise<Service | null> {
    return this.#attached.get(serviceId)?.has(productId) === true ? this.service(serviceId) : null;
  }

  async addService(service: Service, productIds: readonly string[] = []): Promise<void> {
    refuseTaken(this.#services, service.serviceId, `service ${service.serviceId}`);
    expectOwner(this.#organizations, service.organizationId);
    for (const productId of productIds) this.#expectProduct(service, productId);
    this.#services.set(service.serviceId, service);
    this.#attached.set(service.serviceId, new Set(productIds));
  }

  async removeService(serviceId: string): Promise<boolean> {
    this.#attached.delete(serviceId);
    return this.#services.delete(serviceId);
  }

  async productsOfService(serviceId: string): Promise<string[]> {
    return [...(this.#attached.get(serviceId) ?? [])].sort();
  }

  async attachService(serviceId: string, productId: string): Promise<void> {
    const service = this.#services.get(serviceId);
    if (service === undefined) throw new LocalError('NOT_FOUND', `there is no service ${serviceId}`);
    this.#expectProduct(service, productId);
    this.#attached.get(serviceId)!.add(productId);
  }

  async detachService(serviceId: string, productId: string): Promise<boolean> {
    return this.#attached.get(serviceId)?.delete(productId) === true;
  }

  #expectProduct({ organizationId }: Service, productId: string): void {
    if (this.#products.get(productId)?.organizationId === organizationId) return;
    throw new LocalError('NOT_FOUND', `there is no product ${productId} in organization ${organizationId}`);
  }
}

function refuseTaken(items: ReadonlyMap<string, unknown>, key: string, what: string): void {
  if (items.has(key)) throw new LocalError('INVALID_STATE', `${what} exists already`);
}

function expectOwner(organizations: ReadonlyMap<string, Organization>, organizationId: string): void {
  if (!organizations.has(organizationId)) throw new LocalError('NOT_FOUND', `there is no organization ${organizationId}`);
}
