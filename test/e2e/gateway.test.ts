/**
 * `svc gateway` as a process between `svc device` and the client of the package coap.
 *
 * @module-tag slow
 */
import { once } from 'node:events';
import { join } from 'node:path';
import { type IncomingMessage, request } from 'coap';
import { expect, test } from 'vitest';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { ProcessFixture, type SvcProcess } from '../support/fixture/processes.ts';
import { Commands } from './commands.ts';

const { svcJson } = new Commands();
const PRODUCT = drawnProduct();
const processes = new ProcessFixture();

test('svc gateway serves, reports when the device is gone and when it is back, and ends cleanly', async () => {
  const state = ['--state', join(processes.folder, 'client')];
  const key = await svcJson('key', 'create', ...state);
  const startDevice = (port: number): SvcProcess => {
    const names = ['--product', PRODUCT, '--device-id', 'de-1', '--data', join(processes.folder, 'device')];
    return processes.device(...names, '--local-port', `${port}`, '--p2p-port', '0', '--no-mdns', '--allow', `${key.fingerprint}`);
  };
  const device = startDevice(0);
  const { localPort, fingerprint } = await device.event('started');
  const target = ['--address', `127.0.0.1:${localPort}`, '--fingerprint', `${fingerprint}`];
  const gateway = processes.client('gateway', ...target, ...state, '--request-timeout', '10');
  const listening = await gateway.event('listening');
  expect(listening).toMatchObject({ device: `${PRODUCT}.de-1`, host: '127.0.0.1', port: expect.any(Number) });

  const ask = async (method: 'GET' | 'PUT', payload?: string): Promise<string> => {
    const pathname = '/thermostat/target';
    const outgoing = request({ hostname: '127.0.0.1', port: Number(listening.port), method, pathname, agent: false });
    outgoing.end(payload);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return `${response.code} ${response.payload}`;
  };
  expect(await ask('PUT', '22')).toBe('2.04 ');
  expect(await ask('GET')).toBe('2.05 22.0');

  await device.end();
  expect(await gateway.event('lost')).toMatchObject({ device: `${PRODUCT}.de-1`, error: 'CLOSED' });
  expect(await ask('GET')).toBe('5.03 There is no connection to the device');
  await startDevice(Number(localPort)).event('started');
  await gateway.event('connected');
  expect(await ask('GET')).toBe('2.05 22.0');
  expect(await gateway.end('SIGINT')).toBe(0);
});
