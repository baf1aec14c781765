/**
 * `svc device` and clients in one network, without a base station and with one that is switched off: found by multicast
 * DNS on loopback where that carries it; skipped where it does not.
 *
 * @module-tag slow
 */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SvcClient } from '../../client/node.ts';
import { nodeMdns } from '../../platform/node/mdns.ts';
import { decodePairing, encodePairingString } from '../../protocol/records/index.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { ProcessFixture, type SvcProcess } from '../support/fixture/processes.ts';
import { LOOPBACK, linksWithMulticast } from '../support/multicast.ts';
import { Commands } from './commands.ts';

const { svc, svcJson } = new Commands('connect');
const processes = new ProcessFixture();

const PRODUCT = drawnProduct();
const DEVICE = 'de-e2e';
/** Nothing listens on this port. */
const SWITCHED_OFF = 'https://127.0.0.1:1';
const FINGERPRINT = 'ab'.repeat(32);

const links = await linksWithMulticast(nodeMdns([LOOPBACK]).links());

describe.skipIf(links.length === 0)('in a network that carries multicast (none here: skipped)', () => {
  let web: Server;
  let device: SvcProcess;
  let pairing: string;
  let client: string[];

  beforeAll(async () => {
    web = createServer((request, response) => response.end(`you asked for ${request.url}`)).listen(0, '127.0.0.1');
    await once(web, 'listening');
    client = ['--state', join(processes.folder, 'client')];
    const { fingerprint } = await svcJson('key', 'create', ...client);
    const { port } = web.address() as AddressInfo;
    const station = ['--server', SWITCHED_OFF, '--server-fingerprint', FINGERPRINT];
    const names = ['--data', join(processes.folder, 'device'), '--product', PRODUCT, '--device-id', DEVICE, ...station];
    const offers = ['--allow', String(fingerprint), '--tunnel', `web=http:127.0.0.1:${port}`];
    device = processes.device(...names, '--local-port', '0', '--p2p-port', '0', ...offers);
    // The string of a device without a base station.
    const { server: _, serverFingerprint: __, ...alone } = decodePairing(String((await device.event('started')).pairingString));
    pairing = encodePairingString(alone);
  });

  afterAll(() => void web?.close());

  test('a pairing string is enough, and later the name', async () => {
    const first = await svc('connect', pairing, '--name', 'home', ...client);
    expect(first).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(`${PRODUCT}.${DEVICE} (on the local network)\n`) });
    expect(await svcJson('connect', '-d', 'home', ...client)).toMatchObject({
      type: 'DIRECT',
      over: 'local',
      verified: 'pinned',
      station: null,
    });
    expect((await svc('connect', '--list', ...client)).stdout).toMatch(/^home .* local network /m);
  });

  test.concurrent('a request and a tunnel work with the base station switched off', async () => {
    const station = ['--server', SWITCHED_OFF, '--server-fingerprint', FINGERPRINT];
    expect(await svc('coap', 'GET', '/thermostat/target', '-d', 'home', ...client, ...station)).toMatchObject({
      code: 0,
      stdout: '20.0\n',
    });
    const tunnel = processes.client('tunnel', 'web', '-d', 'home', ...client);
    const { port, over } = await tunnel.event('listening');
    expect(over).toBe('local');
    expect(await (await fetch(`http://127.0.0.1:${port}/a`)).text()).toBe('you asked for /a');
    expect(await tunnel.end('SIGINT')).toBe(0);
  });

  test.concurrent('a base station that TLS did not authenticate is not remembered as authenticated', async () => {
    const state = ['--state', join(processes.folder, 'unproved')];
    expect(await svc('connect', pairing, '--server', SWITCHED_OFF, ...state)).toMatchObject({ code: 0, stderr: '' });
    expect((await svc('status', ...state)).stdout).toMatch(new RegExp(`^base stations: none$[^]*${SWITCHED_OFF}$`, 'm'));
  });

  test.concurrent('the SDK needs only the ids', async () => {
    const sdk = SvcClient.create();
    const connection = sdk.createConnection();
    connection.updateOptions({ PrivateKey: sdk.createPrivateKey(), ProductId: PRODUCT, DeviceId: DEVICE, Remote: false });
    await connection.connect();
    expect([connection.getType(), connection.getLocalChannelErrorCode()]).toEqual(['DIRECT', 'OK']);
    await sdk.stop();
  });

  test.concurrent('an absent device is reported with a remedy', async () => {
    const other = ['--product', PRODUCT, '--device-id', 'de-x', '--fingerprint', FINGERPRINT, '--timeout', '1', ...client];
    expect(await svc('connect', ...other)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/de-x does not answer on the local network \(NOT_FOUND\): svc discover .*--address.*--server\n$/),
    });
  });
});
