/**
 * The identity of a `svc device`: from the options at its first start, from state.json afterwards. Its key is created
 * if missing.
 */
import type { Device } from '../../device/index.ts';
import { checkIds } from '../../protocol/records/index.ts';
import { NO_FINGERPRINT } from '../frame/arguments.ts';
import { UsageError } from '../frame/errors.ts';
import type { DeviceData, DeviceState } from './data.ts';

/** Options of a start; earlier values apply where one is left out. */
export interface IdentityOptions {
  readonly product?: string;
  readonly deviceId?: string;
  readonly server?: string;
  /** NO_FINGERPRINT: TLS authenticates it from now on. */
  readonly serverFingerprint?: string;
  /** PEM. */
  readonly rootCerts?: string;
  readonly serverWebsocket?: string;
}

export interface Identity {
  readonly state: DeviceState;
  /** PKCS#8 PEM. */
  readonly privateKey: string;
}

/** Sets the device's identity; the next `DeviceData.update` writes new values. @throws UsageError, CommandError */
export async function identify(device: Device, data: DeviceData, options: IdentityOptions): Promise<Identity> {
  const ProductId = options.product ?? data.state?.ProductId;
  const DeviceId = options.deviceId ?? data.state?.DeviceId;
  if (ProductId === undefined || DeviceId === undefined)
    throw new UsageError(
      'the first start in a directory needs --join - and a join string (svc admin device invite prints one at the base station), or --product and --device-id',
    );
  checkTogether(ProductId, DeviceId);
  if (data.state !== null) refuseAnother(data.directory, data.state, { ProductId, DeviceId });
  const station = stationOf(data.state ?? {}, options);
  const privateKey = await data.privateKey(() => device.createPrivateKey());
  const state = data.adopt({ ProductId, DeviceId, ...station });
  device.setPrivateKey(privateKey);
  device.setProductId(ProductId);
  device.setDeviceId(DeviceId);
  const { ServerUrl, ServerFingerprint, ServerRootCerts, ServerWebSocketUrl } = state;
  if (ServerUrl === undefined) device.setBasestationAttach(false);
  else device.setServerUrl(ServerUrl);
  if (ServerFingerprint !== undefined) device.setServerFingerprint(ServerFingerprint);
  if (ServerRootCerts !== undefined) device.setRootCerts(ServerRootCerts);
  if (ServerWebSocketUrl !== undefined) device.setServerWebSocketUrl(ServerWebSocketUrl);
  return { state, privateKey };
}

type StationState = Pick<DeviceState, 'ServerUrl' | 'ServerFingerprint' | 'ServerRootCerts' | 'ServerWebSocketUrl' | 'Joined'>;

/**
 * The base station of the options, with the stored values that still apply. A fingerprint identifies it at any address;
 * the rest belongs to an address.
 * @throws UsageError
 */
function stationOf(kept: Partial<DeviceState>, options: IdentityOptions): StationState {
  const { server, serverFingerprint, rootCerts, serverWebsocket } = options;
  const ServerUrl = server ?? kept.ServerUrl;
  if (ServerUrl === undefined) {
    if (serverFingerprint !== undefined) throw new UsageError('--server-fingerprint needs --server');
    if (rootCerts !== undefined) throw new UsageError('--root-certs needs --server');
    if (serverWebsocket !== undefined) throw new UsageError('--server-websocket needs --server');
    return {};
  }
  const ServerFingerprint = fingerprintOf(kept, options);
  const atPlace = ServerUrl === kept.ServerUrl ? kept : {};
  const same = ServerFingerprint === undefined ? atPlace : ServerFingerprint === kept.ServerFingerprint ? kept : {};
  return {
    ServerUrl,
    ServerFingerprint,
    ServerRootCerts: ServerFingerprint === undefined ? (rootCerts ?? atPlace.ServerRootCerts) : undefined,
    ServerWebSocketUrl: serverWebsocket ?? atPlace.ServerWebSocketUrl,
    Joined: same.Joined,
  };
}

/** Returns the fingerprint; undefined when TLS authenticates the base station. @throws UsageError */
function fingerprintOf(kept: Partial<DeviceState>, { serverFingerprint, rootCerts }: IdentityOptions): string | undefined {
  if (serverFingerprint === NO_FINGERPRINT) return undefined;
  if (rootCerts === undefined) return serverFingerprint ?? kept.ServerFingerprint;
  if (serverFingerprint !== undefined) throw new UsageError('--root-certs has no effect with --server-fingerprint: give one of them');
  if (kept.ServerFingerprint !== undefined)
    throw new UsageError(
      'the base station is pinned by its fingerprint, which --root-certs does not replace: for TLS instead, give --server-fingerprint none, too',
    );
  return undefined;
}

/** Under other ids no client would find it. @throws UsageError */
function refuseAnother(directory: string, kept: DeviceState, { ProductId, DeviceId }: Pick<DeviceState, 'ProductId' | 'DeviceId'>): void {
  if (ProductId === kept.ProductId && DeviceId === kept.DeviceId) return;
  throw new UsageError(
    `${directory} is already the device ${kept.ProductId}.${kept.DeviceId}: give a new directory with --data, or leave --product and --device-id out`,
  );
}

/** Each id was checked alone; together they have a limit too. */
function checkTogether(productId: string, deviceId: string): void {
  try {
    checkIds(productId, deviceId);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
