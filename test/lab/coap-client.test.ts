/**
 * libcoap's coap-client, an independent CoAP tool, and a device behind the gateway: requests, blocks both ways,
 * Observe. Real sockets on loopback.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Gateway, nodeEnvironment } from '../../client/node.ts';
import { LARGE, StateDevice } from '../client/state-device.ts';
import { TestProcess } from '../support/process.ts';

// Debian has the tool under the name of its TLS library.
const COMMANDS = ['coap-client', 'coap-client-notls', 'coap-client-openssl', 'coap-client-gnutls'];
const command = COMMANDS.find((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0);
const missing = process.env.SVC_LAB_MISSING ?? (command === undefined ? 'coap-client' : undefined);

describe.skipIf(missing !== undefined)(`coap-client${missing === undefined ? '' : ` (skipped: needs ${missing})`}`, () => {
  let folder: string;
  let scene: StateDevice;
  let gateway: Gateway;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-lab-coap-'));
    scene = await StateDevice.start();
    scene.device.addCoapResource('POST', '/echo', ({ payload, contentFormat }) => ({
      status: 205,
      payload,
      contentFormat: contentFormat ?? 42,
    }));
    const connect = (signal?: AbortSignal) => scene.connect(signal);
    gateway = await Gateway.open({ environment: nodeEnvironment(), connect, connection: await connect() });
  });

  afterAll(async () => {
    await gateway?.close();
    await scene?.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  const url = (path: string): string => `coap://127.0.0.1:${gateway.port}${path}`;

  async function ask(...args: string[]): Promise<{ stdout: string; stderr: string }> {
    const asked = new TestProcess(command as string, ['-B', '90', ...args]);
    await asked.succeeded();
    return asked.ended;
  }

  it.each([
    ['con', []],
    ['non', ['-N']],
  ])('GET and PUT, %s', async (_, flags) => {
    await ask(...flags, '-m', 'put', '-e', '21.5', url('/state'));
    expect(scene.stored.toString()).toBe('21.5');
    expect((await ask(...flags, '-m', 'get', url('/state'))).stdout.trim()).toBe('21.5');
    expect((await ask(...flags, '-m', 'get', url('/none'))).stderr).toContain('4.04');
  });

  it.each([
    [5_000, 16],
    [100_000, 256],
    [100_000, 1024],
  ])('%i bytes there and back in blocks of %i', async (length, size) => {
    const [sent, received] = [join(folder, `sent-${size}`), join(folder, `received-${size}`)];
    const body = LARGE.subarray(0, length);
    writeFileSync(sent, body);
    await ask('-b', `${size}`, '-m', 'put', '-t', '42', '-f', sent, url('/state'));
    expect(scene.stored.equals(body)).toBe(true);
    await ask('-b', `${size}`, '-m', 'get', '-o', received, url('/state'));
    expect(readFileSync(received).equals(body)).toBe(true);
    rmSync(received);
    await ask('-b', `${size}`, '-m', 'post', '-t', '42', '-f', sent, '-o', received, url('/echo'));
    expect(readFileSync(received).equals(body)).toBe(true);
  });

  it('recovers when the first message, another one or two in a row are lost', async () => {
    const [sent, received] = [join(folder, 'sent'), join(folder, 'received')];
    const body = LARGE.subarray(0, 6000);
    writeFileSync(sent, body);
    // Losses by number: at a random one in five, the tool loses one block of one body in 300 five times, and gives up.
    const lost = ['-l', '1,4,7-8', '-v', '7'];
    const put = await ask(...lost, '-m', 'put', '-t', '42', '-f', sent, url('/state'));
    expect(scene.stored.equals(body)).toBe(true);
    const got = await ask(...lost, '-m', 'get', '-o', received, url('/state'));
    expect(readFileSync(received).equals(body)).toBe(true);
    for (const { stdout, stderr } of [put, got]) expect(`${stdout}${stderr}`.match(/Packet \d+ dropped/g)).toHaveLength(4);
  });

  it('observes each change and cancels the observation', async () => {
    await ask('-m', 'put', '-e', 'first', url('/state'));
    const observer = new TestProcess(command as string, ['-s', '4', '-B', '20', '-m', 'get', url('/state')]);
    for (const state of ['first', 'second', 'third']) {
      if (state !== 'first') await ask('-m', 'put', '-e', state, url('/state'));
      await observer.until(`“${state}”`, () => observer.stdout.includes(state) || undefined);
    }
    expect(scene.resource.observers).toBe(1);
    await observer.ended;
    await ask('-m', 'get', url('/none'));
    expect([scene.resource.observers, gateway.stats.observations]).toEqual([0, 0]);
  });
});
