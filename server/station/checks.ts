/**
 * Who may attach, and who may connect: the decisions behind the error codes of reference-behaviour §5.2 as PROTOCOL.md §7 amends them.
 * They read the store at each call and change nothing.
 */
import { StationCode } from '../../protocol/errors/index.ts';
import { fingerprintsEqual } from '../../protocol/identity/index.ts';
import type { JwtApp } from '../jwt/key-sets.ts';
import type { TokenVerdict } from '../jwt/verifier.ts';
import { hashSecret } from '../storage/secrets.ts';
import type { Device, Product, Store } from '../storage/store.ts';

export type Checked = { device: Device } | Refused;

export interface Refused {
  readonly refused: StationCode;
  /** Text of the answer. Default: that of the code. */
  readonly message?: string;
}

/** A token of an issuer cannot be checked now; `wait`: s until it can. */
export interface Postponed {
  readonly wait: number;
  readonly reason: 'rate' | 'issuer';
}

/** Checks a token of an issuer for the device that is asked for. */
export type CheckToken = (app: JwtApp, token: string) => Promise<TokenVerdict>;

/** s after which a client may try again when the keys of an issuer cannot be had: they are asked for again by then. */
const ISSUER_SECONDS = 30;

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

/** What a client shows. An SCT goes before a server key and a JWT, which are then not looked at. */
export interface Admission {
  productId: string;
  deviceId: string;
  serverKey?: string | undefined;
  sct?: string | undefined;
  jwt?: string | undefined;
}

/**
 * Product, then the server key with its JWT, then the device, then the SCT: without a valid key nobody learns which devices exist, unless by showing
 * an SCT, which names one device.
 */
export async function checkConnect(store: Store, shown: Admission, checkToken: CheckToken): Promise<Checked | Postponed> {
  const { productId, deviceId, sct } = shown;
  const product = await store.product(productId);
  if (product === null) return { refused: StationCode.UNKNOWN_PRODUCT_ID };
  const refusal = sct === undefined ? await refusalOfKey(store, product, shown, checkToken) : null;
  if (refusal !== null) return refusal;
  const device = await store.device(productId, deviceId);
  if (device === null) return { refused: StationCode.UNKNOWN_DEVICE_ID };
  // Found by its hash: what the time of that says is about SHA-256 hashes, which lead to no token.
  if (sct !== undefined && !(await store.hasToken(productId, deviceId, hashSecret(sct)))) return { refused: StationCode.TOKEN_REJECTED };
  return { device };
}

/**
 * A key of another organization, or for other products, is as unknown here as one that does not exist. A key that asks for a token admits with one, and a key
 * that admits alone without.
 */
async function refusalOfKey(
  store: Store,
  { productId, organizationId }: Product,
  { serverKey, jwt }: Admission,
  checkToken: CheckToken,
): Promise<Refused | Postponed | null> {
  const app = serverKey === undefined ? null : await store.appByKey(hashSecret(serverKey));
  if (app === null || app.organizationId !== organizationId) return { refused: StationCode.UNKNOWN_SERVER_KEY };
  if (app.productIds !== null && !app.productIds.includes(productId)) return { refused: StationCode.UNKNOWN_SERVER_KEY };
  if ((app.authType === 'JWT') !== (jwt !== undefined)) return { refused: StationCode.SERVER_KEY_MISMATCH };
  if (jwt === undefined) return null;
  // A record without an issuer is none that we wrote: nobody can show a token for it.
  return app.jwt === null ? { refused: StationCode.INVALID_JWT } : refusalOfToken(await checkToken({ ...app, jwt: app.jwt }, jwt));
}

function refusalOfToken(verdict: TokenVerdict): Refused | Postponed | null {
  if (typeof verdict === 'object') return { wait: verdict.wait, reason: 'rate' };
  switch (verdict) {
    case 'admitted':
      return null;
    case 'elsewhere':
      return { refused: StationCode.TOKEN_REJECTED, message: 'the token does not name this device' };
    case 'invalid':
      return { refused: StationCode.INVALID_JWT };
    case 'unavailable':
      return { wait: ISSUER_SECONDS, reason: 'issuer' };
  }
}
