/**
 * Bench process: a device with a stream listener that reads everything and keeps nothing, one that writes without end,
 * a CoAP resource with an answer and one without a body. On request it is under access control, and every local client
 * may pair.
 */
import { createIamSecrets, Device, defaultConfiguration, demoState, Iam } from '../../device/index.ts';
import { serve } from './child.ts';

/** Stream ports of the listeners. */
const SINK = 1;
const SOURCE = 2;
const CHUNK = new Uint8Array(256 * 1024);
/** Bytes of the buffer that reads. */
const READ = 65_536;

interface Start {
  readonly productId: string;
  readonly deviceId: string;
  /** Without a base station the device is reached only directly. */
  readonly station?: { readonly port: number; readonly fingerprint: string };
  /** Under access control. */
  readonly iam?: boolean;
}

const device = new Device();
/** Null without access control. */
let iam: Iam | null = null;
const sct = device.createServerConnectToken();
const privateKey = device.createPrivateKey();
device.setPrivateKey(privateKey);
device.setLocalPort(0);
device.setP2pPort(0);
device.addServerConnectToken(sct);
device.addCoapResource('GET', '/figure', () => ({ status: 205, payload: '21.5' }));
device.addCoapResource('GET', '/empty', () => ({ status: 205 }));
device.addStreamListener(SINK, async (arriving) => {
  const stream = arriving.accept();
  // Measures reading only: one buffer takes everything.
  const reader = stream.readable.getReader({ mode: 'byob' });
  for (let buffer = new ArrayBuffer(READ); ; ) {
    const { done, value } = await reader.read(new Uint8Array(buffer));
    if (done) break;
    buffer = value.buffer;
  }
  await stream.close();
});
device.addStreamListener(SOURCE, async (arriving) => {
  const stream = arriving.accept();
  try {
    for (;;) await stream.write(CHUNK);
  } catch {
    // The client has read enough.
  }
});

serve({
  /** Returns what the base station and the client must know of the device. */
  identity: () => ({ fingerprint: device.deviceFingerprint, sct }),

  /** Resolves when the device is attached and the base station knows its token. */
  async start({ productId, deviceId, station, iam: isProtected }: Start) {
    device.setProductId(productId);
    device.setDeviceId(deviceId);
    if (station) {
      device.setServerUrl(`https://127.0.0.1:${station.port}`);
      device.setServerFingerprint(station.fingerprint);
    } else {
      device.setBasestationAttach(false);
    }
    if (isProtected) await protect();
    const attached = new Promise<void>((resolve) => device.onDeviceEvent((event) => event === 'ATTACHED' && resolve()));
    await device.start();
    if (station) {
      await attached;
      while (!device.areServerConnectTokensSynchronized()) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { localPort: device.localPort };
  },

  /** Adds a user with a password to a device under access control. */
  async addUser({ username, password }: { username: string; password: string }) {
    await iam?.update((draft) => draft.createUser(username));
    await iam?.setUserPassword(username, password);
  },

  /** Returns the resident bytes after a collection. */
  resident() {
    globalThis.gc?.();
    return process.memoryUsage.rss();
  },
});

async function protect(): Promise<void> {
  const secrets = createIamSecrets(privateKey);
  const { state } = await demoState(secrets);
  iam = new Iam({ configuration: defaultConfiguration(), state, secrets });
  device.setIam(iam);
}
