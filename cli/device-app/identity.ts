/** Who a device of `svc device` is: from the options at its first start, from state.json afterwards. Its key is made when it is missing. */
import type { Device } from '../../device/index.ts';
import { checkIds } from '../../protocol/records/index.ts';
import { UsageError } from '../frame/errors.ts';
import type { DeviceData, DeviceState } from './data.ts';

/** What may be said at a start; what was said before counts where something is left out. */
export interface IdentityOptions {
  readonly product?: string;
  readonly deviceId?: string;
  readonly server?: string;
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

/** Tells the device who it is; what is new reaches the disk with the next `DeviceData.update`. @throws UsageError, CommandError */
export async function identify(device: Device, data: DeviceData, options: IdentityOptions): Promise<Identity> {
  const ProductId = options.product ?? data.state?.ProductId;
  const DeviceId = options.deviceId ?? data.state?.DeviceId;
  if (ProductId === undefined || DeviceId === undefined)
    throw new UsageError(
      'the first start in a directory needs --join - and a join string (svc admin device invite prints one at the base station), or --product and --device-id',
    );
  checkTogether(ProductId, DeviceId);
  const station = stationOf(data.state ?? {}, options);
  const privateKey = await data.privateKey(() => device.createPrivateKey());
  const state = data.adopt({
    ProductId,
    DeviceId,
    ...station,
  });
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

/** The base station of the options, and what is kept of the one of that address. @throws UsageError */
function stationOf(
  kept: Partial<DeviceState>,
  { server, serverFingerprint, rootCerts, serverWebsocket }: IdentityOptions,
): Pick<DeviceState, 'ServerUrl' | 'ServerFingerprint' | 'ServerRootCerts' | 'ServerWebSocketUrl' | 'Joined'> {
  if (serverFingerprint !== undefined && rootCerts !== undefined)
    throw new UsageError('--root-certs has no effect beside --server-fingerprint: give one of them');
  const ServerUrl = server ?? kept.ServerUrl;
  if (ServerUrl === undefined) {
    if (serverFingerprint !== undefined) throw new UsageError('--server-fingerprint needs --server');
    if (rootCerts !== undefined) throw new UsageError('--root-certs needs --server');
    if (serverWebsocket !== undefined) throw new UsageError('--server-websocket needs --server');
    return {};
  }
  const same = ServerUrl === kept.ServerUrl ? kept : {};
  if (rootCerts !== undefined && same.ServerFingerprint !== undefined)
    throw new UsageError(
      'the base station is known by its fingerprint, which --root-certs does not replace: remove it from state.json first',
    );
  const ServerFingerprint = serverFingerprint ?? same.ServerFingerprint;
  const ServerRootCerts = ServerFingerprint === undefined ? (rootCerts ?? same.ServerRootCerts) : undefined;
  const ServerWebSocketUrl = serverWebsocket ?? same.ServerWebSocketUrl;
  return { ServerUrl, ServerFingerprint, ServerRootCerts, ServerWebSocketUrl, Joined: same.Joined };
}

/** Each id was looked at alone; together they have a limit too. */
function checkTogether(productId: string, deviceId: string): void {
  try {
    checkIds(productId, deviceId);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
