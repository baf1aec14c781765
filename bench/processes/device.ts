/** Bench process: a device with a stream listener that reads everything and keeps nothing, and one CoAP resource. */
import { Device } from '../../device/index.ts';
import { serve } from './child.ts';

/** Stream port of the listener. */
const SINK = 1;

interface Start {
  readonly productId: string;
  readonly deviceId: string;
  /** Without a base station the device is reached directly only. */
  readonly station?: { readonly port: number; readonly fingerprint: string };
}

const device = new Device();
const sct = device.createServerConnectToken();
device.setPrivateKey(device.createPrivateKey());
device.setLocalPort(0);
device.setP2pPort(0);
device.addServerConnectToken(sct);
device.addCoapResource('GET', '/figure', () => ({ status: 205, payload: '21.5' }));
device.addStreamListener(SINK, async (arriving) => {
  const stream = arriving.accept();
  for await (const _ of stream.readable) {
    // the reading is what is measured
  }
  await stream.close();
});

serve({
  /** What the base station and the client must know of it. */
  identity: () => ({ fingerprint: device.deviceFingerprint, sct }),

  /** Resolves when the device is attached and its token is known to the base station. */
  async start({ productId, deviceId, station }: Start) {
    device.setProductId(productId);
    device.setDeviceId(deviceId);
    if (station) {
      device.setServerUrl(`https://127.0.0.1:${station.port}`);
      device.setServerFingerprint(station.fingerprint);
    } else {
      device.setBasestationAttach(false);
    }
    const attached = new Promise<void>((resolve) => device.onDeviceEvent((event) => event === 'ATTACHED' && resolve()));
    await device.start();
    if (station) {
      await attached;
      while (!device.areServerConnectTokensSynchronized()) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { localPort: device.localPort };
  },

  /** Resident bytes, after a collection. */
  resident() {
    globalThis.gc?.();
    return process.memoryUsage.rss();
  },
});
