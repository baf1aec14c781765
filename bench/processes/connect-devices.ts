/** Bench process: devices of one product, with their defaults except for ports that the system chooses. */
import { networkInterfaces } from 'node:os';
import type { Device } from '../../device/index.ts';
import { load } from './checkout.ts';
import { serve } from './child.ts';
import type { Target } from './connect-client.ts';

const PRODUCT = 'pr-bench';
const LOOPBACK = '127.0.0.1';

const { Device: DeviceOfCheckout } = await load<typeof import('../../device/index.ts')>('device/index.js');
const identities: { readonly deviceId: string; readonly key: string; readonly sct: string; readonly fingerprint: string }[] = [];
const running: Device[] = [];

serve({
  /** Creates the identities of devices. Returns what the base station must know of them. */
  identities({ count }: { count: number }) {
    for (let index = 0; index < count; index++) {
      const device = new DeviceOfCheckout();
      const key = device.createPrivateKey();
      device.setPrivateKey(key);
      const sct = device.createServerConnectToken();
      identities.push({ deviceId: `de-${index}`, key, sct, fingerprint: device.deviceFingerprint });
    }
    return { productId: PRODUCT, devices: identities.map(({ deviceId, fingerprint }) => ({ deviceId, fingerprint })) };
  },

  /** Starts the devices from `first` on. Resolves when they are attached, and the base station has their tokens. */
  async start({ station, first, count }: { station: Target['station']; first: number; count: number }): Promise<Target[]> {
    const started = identities.slice(first, first + count).map(async ({ deviceId, sct, fingerprint }, index) => {
      running.push(await attached(first + index, station));
      return { productId: PRODUCT, deviceId, deviceFingerprint: fingerprint, sct, station };
    });
    return Promise.all(started);
  },

  /** Starts, attaches and closes a device, one time after the other. */
  async attachments({ station, index, count }: { station: Target['station']; index: number; count: number }) {
    for (let round = 0; round < count; round++) {
      const device = await attached(index, station);
      await device.close();
    }
  },

  /** Ends the first device, which comes back to the base station by an address of this host that is not loopback. */
  async moveOutward({ station }: { station: Target['station'] }) {
    await running[0]!.close();
    await attached(0, station, outwardAddress());
  },
});

/** Starts a device. Resolves when it is attached, and the base station has its token. */
async function attached(index: number, station: Target['station'], host = LOOPBACK): Promise<Device> {
  const { deviceId, key, sct } = identities[index]!;
  const device = new DeviceOfCheckout();
  device.setPrivateKey(key);
  device.setProductId(PRODUCT);
  device.setDeviceId(deviceId);
  device.setLocalPort(0);
  device.setP2pPort(0);
  device.addServerConnectToken(sct);
  device.setServerUrl(`https://${host}:${station.port}`);
  device.setServerFingerprint(station.fingerprint);
  const event = new Promise<void>((resolve) => device.onDeviceEvent((name) => name === 'ATTACHED' && resolve()));
  await device.start();
  await event;
  while (!device.areServerConnectTokensSynchronized()) await new Promise((resolve) => setTimeout(resolve, 2));
  return device;
}

/** Returns this host's first IPv4 address besides those of loopback, which is what it has without a network. */
function outwardAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? LOOPBACK;
}
