/**
 * Decides which devices may attach and which clients may connect, with the codes of PROTOCOL.md §10 and the rules of
 * its §7. The checks read the store at each call and change nothing.
 */
import { StationCode } from '../../protocol/errors/index.ts';
import { fingerprintsEqual } from '../../protocol/identity/index.ts';
import type { JwtApp } from '../jwt/key-sets.ts';
import type { TokenVerdict } from '../jwt/verifier.ts';
import { hashSecret } from '../storage/secrets.ts';
import type { Device, Store } from '../storage/store.ts';

export type CheckResult = { device: Device } | Refusal;

export interface Refusal {
  readonly refused: StationCode;
  /** Text of the answer. Default: that of the code. */
  readonly message?: string;
}

/** A token of an issuer cannot be checked now; `wait`: s until it can. */
export interface Postponement {
  readonly wait: number;
  readonly reason: 'rate' | 'issuer';
}

/** Checks a token of an issuer for the requested device. */
export type CheckToken = (app: JwtApp, token: string) => Promise<TokenVerdict>;

/** s after which a client may try again when the keys of an issuer are unavailable: by then they are fetched again. */
const ISSUER_SECONDS = 30;

/**
 * Checks an attach. The device is looked up by product and device id, then its key is compared. Only if that fails are
 * the owners of the key looked up, in the order fingerprint, device id, product id. "Wrong product" and "wrong device"
 * are answered only within one organization, or when the product does not exist at all.
 * @param fingerprint of the key that the session proved
 */
export async function checkAttach(store: Store, productId: string, deviceId: string, fingerprint: string): Promise<CheckResult> {
  const device = await store.device(productId, deviceId);
  if (device?.fingerprint && fingerprintsEqual(device.fingerprint, fingerprint)) return { device };
  const product = await store.product(productId);
  const owners = await store.devicesByFingerprint(fingerprint);
  const disclosable = owners.filter((owner) => product === null || owner.organizationId === product.organizationId);
  if (disclosable.length === 0) return { refused: StationCode.UNKNOWN_FINGERPRINT };
  const sameDeviceId = disclosable.some((owner) => owner.deviceId === deviceId);
  return { refused: sameDeviceId ? StationCode.WRONG_PRODUCT_ID : StationCode.WRONG_DEVICE_ID };
}

/** The proofs that a client shows. With an SCT, server key and JWT are ignored. */
export interface Admission {
  productId: string;
  deviceId: string;
  serverKey?: string | undefined;
  sct?: string | undefined;
  jwt?: string | undefined;
}

/**
 * Checks a connect: product, then the server key with its JWT, then the device, then the SCT. Without a valid key a
 * client cannot learn which devices exist, except by showing an SCT, which names one device. With an SCT the product is
 * looked up only if the device does not exist.
 */
export async function checkConnect(store: Store, shown: Admission, checkToken: CheckToken): Promise<CheckResult | Postponement> {
  const { productId, deviceId, sct } = shown;
  const refusal = sct === undefined ? await refusalOfKey(store, shown, checkToken) : null;
  if (refusal !== null) return refusal;
  const device = await store.device(productId, deviceId);
  if (device === null)
    return { refused: (await store.product(productId)) === null ? StationCode.UNKNOWN_PRODUCT_ID : StationCode.UNKNOWN_DEVICE_ID };
  // Looked up by its hash: timing reveals only SHA-256 hashes, which lead to no token.
  if (sct !== undefined && !(await store.hasToken(productId, deviceId, hashSecret(sct)))) return { refused: StationCode.TOKEN_REJECTED };
  return { device };
}

/**
 * A key of another organization, or for other products, counts as unknown. A key that requires a token admits only with
 * one, any other key only without.
 */
async function refusalOfKey(
  store: Store,
  { productId, serverKey, jwt }: Admission,
  checkToken: CheckToken,
): Promise<Refusal | Postponement | null> {
  const product = await store.product(productId);
  if (product === null) return { refused: StationCode.UNKNOWN_PRODUCT_ID };
  const app = serverKey === undefined ? null : await store.appByKey(hashSecret(serverKey));
  if (app === null || app.organizationId !== product.organizationId) return { refused: StationCode.UNKNOWN_SERVER_KEY };
  if (app.productIds !== null && !app.productIds.includes(productId)) return { refused: StationCode.UNKNOWN_SERVER_KEY };
  if ((app.authType === 'JWT') !== (jwt !== undefined)) return { refused: StationCode.SERVER_KEY_MISMATCH };
  if (jwt === undefined) return null;
  // This base station writes no such record: no token can be valid for it.
  return app.jwt === null ? { refused: StationCode.INVALID_JWT } : refusalOfToken(await checkToken({ ...app, jwt: app.jwt }, jwt));
}

function refusalOfToken(verdict: TokenVerdict): Refusal | Postponement | null {
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
