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
    throw new UsageError('the first start in a directory needs --product and --device-id');
  checkTogether(ProductId, DeviceId);
  const ServerUrl = options.server ?? data.state?.ServerUrl;
  const ServerFingerprint = options.serverFingerprint ?? (ServerUrl === data.state?.ServerUrl ? data.state?.ServerFingerprint : undefined);
  if ((ServerUrl === undefined) !== (ServerFingerprint === undefined)) {
    throw new UsageError('--server and --server-fingerprint belong together: svc basestation prints its fingerprint at its start');
  }
  const privateKey = await data.privateKey(() => device.createPrivateKey());
  const state = data.adopt({
    ProductId,
    DeviceId,
    ...(ServerUrl !== undefined && { ServerUrl }),
    ...(ServerFingerprint !== undefined && { ServerFingerprint }),
  });
  device.setPrivateKey(privateKey);
  device.setProductId(ProductId);
  device.setDeviceId(DeviceId);
  if (ServerUrl !== undefined && ServerFingerprint !== undefined) {
    device.setServerUrl(ServerUrl);
    device.setServerFingerprint(ServerFingerprint);
  } else {
    device.setBasestationAttach(false);
  }
  return { state, privateKey };
}

/** Each id was looked at alone; together they have a limit too. */
function checkTogether(productId: string, deviceId: string): void {
  try {
    checkIds(productId, deviceId);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
