/**
 * Who may attach, and who may connect: the decisions behind the error codes of reference-behaviour §5.2 as PROTOCOL.md §7 amends them.
 * They read the store at each call and change nothing.
 */
import { StationCode } from '../../protocol/errors/index.ts';
import { fingerprintsEqual } from '../../protocol/identity/index.ts';
import { hashSecret } from '../storage/secrets.ts';
import type { App, Device, Store } from '../storage/store.ts';

export type Checked = { device: Device } | Refused;

export interface Refused {
  readonly refused: StationCode;
  /** Text of the answer. Default: that of the code. */
  readonly message?: string;
}

/** Tokens of an issuer are not checked yet: they admit nobody. */
const JWT_UNSUPPORTED: Refused = { refused: StationCode.INVALID_JWT, message: 'tokens of an issuer (JWT) are not supported yet' };

/**
 * A device is looked up by product and device id, then its key is compared. Only when that fails is it asked where the key belongs, in the order
 * fingerprint, device id, product id; "wrong product" and "wrong device" are told only within one organization, or when the product
 * named does not exist at all.
 * @param fingerprint of the key the session proved
 */
export async function checkAttach(store: Store, productId: string, deviceId: string, fingerprint: string): Promise<Checked> {
  const device = await store.device(productId, deviceId);
  if (device?.fingerprint && fingerprintsEqual(device.fingerprint, fingerprint)) return { device };
  const product = await store.product(productId);
  const owners = await store.devicesByFingerprint(fingerprint);
  const tellable = owners.filter((owner) => product === null || owner.organizationId === product.organizationId);
  if (tellable.length === 0) return { refused: StationCode.UNKNOWN_FINGERPRINT };
  const sameDeviceId = tellable.some((owner) => owner.deviceId === deviceId);
  return { refused: sameDeviceId ? StationCode.WRONG_PRODUCT_ID : StationCode.WRONG_DEVICE_ID };
}

/** What a client shows. An SCT goes before a server key and a JWT, which are then not looked at; a key that admits alone before a JWT. */
export interface Admission {
  productId: string;
  deviceId: string;
  serverKey?: string | undefined;
  sct?: string | undefined;
  jwt?: string | undefined;
}

/**
 * Product, then the server key or JWT, then the device, then the SCT: without a valid key nobody learns which devices exist, unless by showing
 * an SCT, which names one device.
 */
export async function checkConnect(store: Store, { productId, deviceId, serverKey, sct, jwt }: Admission): Promise<Checked> {
  const product = await store.product(productId);
  if (product === null) return { refused: StationCode.UNKNOWN_PRODUCT_ID };
  if (sct === undefined) {
    if (serverKey === undefined && jwt !== undefined) return JWT_UNSUPPORTED;
    const app = serverKey === undefined ? null : await store.appByKey(hashSecret(serverKey));
    const refused = refusal(app, product, jwt);
    if (refused !== null) return refused;
  }
  const device = await store.device(productId, deviceId);
  if (device === null) return { refused: StationCode.UNKNOWN_DEVICE_ID };
  // Found by its hash: what the time of that says is about SHA-256 hashes, which lead to no token.
  if (sct !== undefined && !(await store.hasToken(productId, deviceId, hashSecret(sct)))) return { refused: StationCode.TOKEN_REJECTED };
  return { device };
}

/** A key of another organization, or for other products, is as unknown here as one that does not exist. */
function refusal(app: App | null, product: { productId: string; organizationId: string }, jwt: string | undefined): Refused | null {
  if (app === null || app.organizationId !== product.organizationId) return { refused: StationCode.UNKNOWN_SERVER_KEY };
  if (app.productIds !== null && !app.productIds.includes(product.productId)) return { refused: StationCode.UNKNOWN_SERVER_KEY };
  if (app.authType === 'NONE') return null;
  return jwt === undefined ? { refused: StationCode.SERVER_KEY_MISMATCH } : JWT_UNSUPPORTED;
}
