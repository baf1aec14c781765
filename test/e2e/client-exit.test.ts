/**
 * A program ends when its connections are closed or could not be opened, even without `SvcClient.stop`, whatever the
 * client used (a process, real sockets).
 *
 * @module-tag slow
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { Device } from '../../device/index.ts';
import { silentLog } from '../../platform/environment.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { startBasestation } from '../../server/index.ts';
import { ids, SCT } from '../support/fixture/identifiers.ts';
import { TestProcess } from '../support/process.ts';
import { registerInDirectory } from '../support/registered-device.ts';

const CHILD = fileURLToPath(new URL('client-exit-child.mjs', import.meta.url));

test('a program ends after a relayed, a direct and a WebSocket connection, one during the local search, and one that failed', async () => {
  const data = await mkdtemp(join(tmpdir(), 'svc-client-exit-'));
  onTestFinished(() => rm(data, { recursive: true, force: true }));
  const device = new Device({ environment: nodeEnvironment(), ...ids, localPort: 0, p2pPort: 0 });
  device.setPrivateKey(device.createPrivateKey());
  await registerInDirectory(data, device.deviceFingerprint);
  const settings = { connections: 32, webSockets: 8, stunPort: 0 };
  const station = await startBasestation({ data, port: 0, host: '127.0.0.1', log: silentLog, settings });
  onTestFinished(() => station.close());
  const ServerUrl = `https://127.0.0.1:${station.port}`;
  device.setServerUrl(ServerUrl);
  device.setServerFingerprint(station.fingerprint);
  device.addServerConnectToken(SCT);
  device.setRendezvous({ mode: 'anyone' });
  device.addCoapResource('GET', '/hello', () => ({ status: 205 }));
  const attached = new Promise<void>((resolve) => void device.onDeviceEvent((event) => event === 'ATTACHED' && resolve()));
  await device.start();
  onTestFinished(() => device.close());
  await attached;

  const { productId: ProductId, deviceId: DeviceId } = ids;
  const options = { ProductId, DeviceId, ServerUrl, ServerFingerprint: station.fingerprint, ServerConnectToken: SCT };
  const pinned = { ...options, DeviceFingerprint: device.deviceFingerprint };
  const child = new TestProcess(process.execPath, [CHILD, JSON.stringify({ options: pinned, stationPort: station.port })]);
  const { code, stdout, stderr } = await child.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.trim().split('\n')).toEqual([
    'relay 205 RELAY udp',
    expect.stringMatching(/^direct 205 DIRECT /),
    'websocket 205 RELAY websocket',
    'search 205 RELAY udp',
    'failed UNKNOWN_DEVICE_ID',
  ]);
});
