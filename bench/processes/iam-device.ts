/** Bench process: a device under access control that anybody may pair with locally, and one CoAP resource without a body. Reached directly only. */
import { createIamSecrets, Device, defaultConfiguration, demoState, Iam } from '../../device/index.ts';
import { serve } from './child.ts';

serve({
  async start({ productId, deviceId }: { productId: string; deviceId: string }) {
    const device = new Device();
    const privateKey = device.createPrivateKey();
    device.setProductId(productId);
    device.setDeviceId(deviceId);
    device.setPrivateKey(privateKey);
    device.setLocalPort(0);
    device.setP2pPort(0);
    device.setBasestationAttach(false);
    device.addCoapResource('GET', '/empty', () => ({ status: 205 }));
    const secrets = createIamSecrets(privateKey);
    const { state } = await demoState(secrets);
    device.setIam(new Iam({ configuration: defaultConfiguration(), state, secrets }));
    await device.start();
    return { localPort: device.localPort, deviceFingerprint: device.deviceFingerprint };
  },
});
