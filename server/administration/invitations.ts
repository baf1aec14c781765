/**
 * Invitations: each lets one device join a product without an operator. The token is shown once and stored only as a
 * hash, whose first digits name the invitation.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { MAX_DEVICE_NAME } from '../../protocol/records/ids.ts';
import { type Invitation, InvitationLifetime } from '../storage/invitation-store.ts';
import { hashToken, newInvitationToken } from '../storage/secrets.ts';
import type { Store } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { addProduct } from './products.ts';
import { AdministrationError, expectFound, invalid } from './refusal.ts';
import { checkDeviceIds, checkId, checkName } from './rules.ts';

/**
 * Most open invitations of one product. Only users who may create invitations can reach it; slots are freed when
 * invitations are used, revoked or expire.
 */
export const OPEN_PER_PRODUCT = 1_000;
/** Digits of the hash that name an invitation in lists, and the fewest that may name one. */
const ID_DIGITS = 12;
const MIN_ID_DIGITS = 6;
/** The product that is created when there is none and none is named. */
const HOME_PRODUCT = 'pr-home';
/** Length of a device id that the base station creates (`secrets.ts`). */
const MADE_ID = 'de-xxxxxxxx'.length;
/** Most products that a refusal names. */
const NAMED_PRODUCTS = 5;

/** An invitation to create. */
export interface NewInvitationRequest {
  /** Default: the only product, or a new one. */
  productId?: string | undefined;
  /** Default: device or base station chooses. */
  deviceId?: string | undefined;
  /** ms from now, 1 minute to 30 days. Default: 24 hours. */
  lifetime?: number | undefined;
  /** Organization of a new product. */
  organizationId?: string | undefined;
  /** Who created it, for a person to read. */
  maker: string;
}

/** A new invitation. Its token cannot be recovered later. */
export interface MadeInvitation {
  readonly invitation: InvitationRecord;
  /** 16 bytes. */
  readonly token: Uint8Array;
  /** Whether the product was missing and has been created. */
  readonly productMade: boolean;
}

/** An invitation as shown in lists. */
export interface InvitationRecord extends Omit<Invitation, 'tokenHash'> {
  /** First digits of the token's hash. */
  readonly invitationId: string;
}

/**
 * Creates an invitation, and its product if that is missing.
 * @throws AdministrationError invalid, several-products, has-key, too-many; as `addProduct` for a new product
 */
export async function inviteDevice(administration: Administration, request: NewInvitationRequest): Promise<MadeInvitation> {
  const { store, wallTime, randomBytes } = administration;
  const { deviceId = null, lifetime = InvitationLifetime.DEFAULT } = request;
  if (!(lifetime >= InvitationLifetime.MIN && lifetime <= InvitationLifetime.MAX))
    invalid('an invitation is valid for 1 minute to 30 days');
  const maker = checkName(request.maker);
  if (request.productId !== undefined) checkIds(request.productId, deviceId);
  const { productId, made: productMade } = await productOf(administration, request);
  checkIds(productId, deviceId);
  if (deviceId !== null) await refuseWithKey(store, productId, deviceId);
  const token = newInvitationToken(randomBytes);
  const expires = new Date(wallTime() + lifetime).toISOString();
  const invitation = { tokenHash: hashToken(token), productId, deviceId, expires, maker, created: creationTime(administration) };
  if (!(await store.invitations.add(invitation, OPEN_PER_PRODUCT)))
    throw new AdministrationError({ kind: 'too-many' }, `product ${productId} has ${OPEN_PER_PRODUCT} open invitations`);
  return { invitation: recordOf({ ...invitation, revoked: false, use: null }), token, productMade };
}

/**
 * Returns the open invitations, and those used in the last 30 days. It removes none: when the wall clock was just set,
 * only the running base station knows which have really expired (`clock-steps.ts`).
 */
export async function invitations({ store, wallTime }: Administration): Promise<InvitationRecord[]> {
  const now = new Date(wallTime()).toISOString();
  const usedSince = new Date(wallTime() - InvitationLifetime.USED).toISOString();
  const all = await store.invitations.all();
  return all.filter(({ use, expires }) => (use === null ? expires > now : use.time >= usedSince)).map(recordOf);
}

/**
 * Revokes an open invitation: it is no longer valid.
 * @param id its first digits, 6 or more
 * @returns its full id
 * @throws AdministrationError invalid, not-found, used
 */
export async function revokeInvitation({ store }: Administration, id: string): Promise<string> {
  const digits = id.toLowerCase();
  if (!/^[0-9a-f]{6,64}$/.test(digits))
    invalid(`an invitation is named by ${MIN_ID_DIGITS} or more of the hexadecimal digits that its list shows`);
  const found = (await store.invitations.all()).filter(({ tokenHash }) => tokenHash.startsWith(digits));
  const [invitation] = found;
  expectFound(invitation !== undefined, 'invitation', id);
  if (found.length > 1) invalid(`${found.length} invitations begin with ${digits}: give more digits`);
  const { tokenHash, productId } = invitation!;
  if (!(await store.invitations.revoke(tokenHash))) {
    const { use } = (await store.invitations.find(tokenHash)) ?? invitation!;
    const ids = { productId, deviceId: use?.deviceId ?? '' };
    throw new AdministrationError(
      { kind: 'used', ...ids },
      `the invitation was used: the device ${ids.deviceId} of product ${productId} has joined`,
    );
  }
  return recordOf(invitation!).invitationId;
}

/** Revokes all open invitations of one creator. */
export async function revokeInvitationsOf({ store }: Administration, maker: string): Promise<number> {
  const open = (await store.invitations.all()).filter(({ use, revoked, maker: each }) => use === null && !revoked && each === maker);
  for (const { tokenHash } of open) await store.invitations.revoke(tokenHash);
  return open.length;
}

function checkIds(productId: string, deviceId: string | null): void {
  if (deviceId !== null) checkDeviceIds(productId, deviceId);
  else if (checkId(productId).length + 1 + MADE_ID > MAX_DEVICE_NAME)
    invalid(`product id ${productId} leaves no room for a generated device id: name one`);
}

async function productOf(administration: Administration, { productId, organizationId }: NewInvitationRequest) {
  const { store } = administration;
  if (productId !== undefined) return { productId, made: await isMade(administration, productId, organizationId) };
  const products = await store.products(organizationId);
  if (products.length > 1) throw severalProducts(products.map((each) => each.productId));
  const [only] = products;
  if (only !== undefined) return { productId: only.productId, made: false };
  return { productId: HOME_PRODUCT, made: await isMade(administration, HOME_PRODUCT, organizationId) };
}

function severalProducts(productIds: readonly string[]): AdministrationError {
  const named = productIds.slice(0, NAMED_PRODUCTS).join(', ');
  const more = productIds.length > NAMED_PRODUCTS ? ` and ${productIds.length - NAMED_PRODUCTS} more` : '';
  return new AdministrationError({ kind: 'several-products', productIds }, `there are several products, ${named}${more}`);
}

/** Creates the product if it is missing; returns whether it did. */
async function isMade(administration: Administration, productId: string, organizationId: string | undefined): Promise<boolean> {
  const { store } = administration;
  if ((await store.product(productId)) !== null) return false;
  try {
    await addProduct(administration, { productId, organizationId });
    return true;
  } catch (error) {
    // Another process has created it meanwhile.
    if (error instanceof LocalError && error.code === 'INVALID_STATE' && (await store.product(productId)) !== null) return false;
    throw error;
  }
}

async function refuseWithKey(store: Store, productId: string, deviceId: string): Promise<void> {
  const device = await store.device(productId, deviceId);
  if (device === null || device.fingerprint === null) return;
  throw new AdministrationError({ kind: 'has-key', productId, deviceId }, `device ${deviceId} of product ${productId} has a key already`);
}

function recordOf({ tokenHash, ...invitation }: Invitation): InvitationRecord {
  return { invitationId: tokenHash.slice(0, ID_DIGITS), ...invitation };
}
