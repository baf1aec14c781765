/** A device and a client of this process, connected over loopback: real UDP on free ports, no base station. */
import { type Connection, SvcClient } from '../../client/node.ts';
import { type AuthorizationRequest, Device, type DeviceOptions } from '../../device/index.ts';

export interface DirectPair {
  readonly device: Device;
  readonly client: SvcClient;
  /** Of the client to the device, connected. */
  readonly connection: Connection;
  close(): Promise<void>;
}

/** @param decide answers each authorization request */
export async function directPair(decide: (request: AuthorizationRequest) => boolean, options: DeviceOptions = {}): Promise<DirectPair> {
  const device = new Device({ productId: 'pr-1', deviceId: 'de-1', localPort: 0, p2pPort: 0, basestationAttach: false, ...options });
  device.setPrivateKey(device.createPrivateKey());
  device.onAuthorizationRequest(decide);
  await device.start();
  const client = SvcClient.create();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), DeviceFingerprint: device.deviceFingerprint });
  connection.enableDirectCandidates();
  connection.addDirectCandidate('127.0.0.1', device.localPort);
  connection.endOfDirectCandidates();
  await connection.connect();
  const close = async (): Promise<void> => {
    await client.stop();
    await device.close();
  };
  return { device, client, connection, close };
}
