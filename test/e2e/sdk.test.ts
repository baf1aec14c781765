/**
 * The blocks of docs/sdk.md, and that of docs/errors.md, as one program: base station, devices and client in this
 * process, over loopback, on free ports. The operator's commands run beside it. The network beyond loopback is left
 * out: multicast DNS uses the loopback interface alone, and devices search no direct paths.
 */
import { createSocket, type Socket } from 'node:dgram';
import { EventEmitter, once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PushEmulator } from '../../cli/dev/push-emulator.ts';
import * as browser from '../../client/browser.ts';
import * as client from '../../client/node.ts';
import * as device from '../../device/index.ts';
import { type RunningBasestation, startBasestation } from '../../server/index.ts';
import { type Block, blocksOf, Program } from '../support/document-blocks.ts';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { svcInProcess } from './in-process.ts';

const HOST = '127.0.0.1';
/** In place of that of the documents. */
const PRODUCT = drawnProduct();
const REPORT = JSON.stringify({ message: Buffer.from('noted').toString('base64') });
const silent = { error() {}, warn() {}, info() {}, debug() {}, trace() {} };

const sdk = blocksOf(await document('sdk.md'));
const errors = blocksOf(await document('errors.md'));
const folder = await mkdtemp(join(tmpdir(), 'svc-sdk-'));
const data = join(folder, 'station');
const signals = new EventEmitter();

let station: RunningBasestation;
let provider: PushEmulator;
let web: Server;
let echo: Socket;
let program: Program;

beforeAll(async () => {
  web = createServer((request, response) => {
    if (request.method === 'POST') response.writeHead(200, { 'content-type': 'application/json' }).end(REPORT);
    else response.end('the web page');
  }).listen(0, HOST);
  echo = createSocket('udp4').bind(0, HOST);
  echo.on('message', (message, { port }) => echo.send(message, port, HOST));
  await Promise.all([once(web, 'listening'), once(echo, 'listening')]);
  provider = await PushEmulator.start({ projectId: 'demo-project' });
  station = await startBasestation({ data, port: 0, host: HOST, log: silent });
  const { joinString } = await admin('device', 'invite', PRODUCT, '--device-id', 'de-1');
  program = new Program(modules(), {
    directory: folder,
    joinString,
    webPort: (web.address() as AddressInfo).port,
    echoPort: echo.address().port,
    registrationToken: 'a-phone',
    process: signals,
  });
});

afterAll(async () => {
  await Promise.allSettled(['client', 'device', 'house'].map((name) => end(program.value(name))));
  await station?.close();
  await provider?.close();
  web?.closeAllConnections();
  web?.close();
  echo?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('docs/sdk.md', () => {
  // In order: each needs the ones before it.
  it.each(sdk)('$name', async (block) => {
    await before[block.name]?.();
    if (block.name === 'browser') return inBrowser(block);
    await program.run(block);
    await after[block.name]?.();
  });

  it('has blocks, and each printed its documented output', async () => {
    expect(sdk.length).toBeGreaterThan(25);
    await program.end();
  });
});

/** The operator's part, beside the program. */
const before: Readonly<Record<string, () => Promise<unknown>>> = {
  push: async () => {
    const account = join(folder, 'account.json');
    await writeFile(account, JSON.stringify(provider.account));
    return admin('push-credential', 'add', account, '--base-url', provider.url);
  },
  service: () => {
    const url = `http://${HOST}:${(web.address() as AddressInfo).port}/hook`;
    return admin('service', 'add', url, 'se-report', '--product', PRODUCT, '--allow-private');
  },
};

const after: Readonly<Record<string, () => Promise<unknown>>> = {
  push: async () => expect(provider.received).toHaveLength(1),
  errors: async () => {
    const connection = (program.value('client') as client.SvcClient).createConnection();
    connection.updateOptions({ ...(program.value('options') as client.ConnectionOptions), ProductId: 'pr-other', Local: false });
    expect(errors).toHaveLength(1);
    for (const block of errors) await program.run(block, { connection });
  },
  shutdown: async () => {
    for (const listener of signals.listeners('SIGTERM')) await listener();
    expect((program.value('connection') as client.Connection).isConnected).toBe(false);
    expect(() => (program.value('client') as client.SvcClient).createConnection()).toThrow(expect.objectContaining({ code: 'STOPPED' }));
  },
};

/** A page has neither UDP tunnels nor multicast DNS. */
async function inBrowser(block: Block): Promise<void> {
  const { mdns: _, getHttps: __, ...environment } = client.nodeEnvironment();
  const page = new Program({ 'svc-connect/client': browser }, { environment });
  await page.run(block);
  await page.end();
}

/** The package as the blocks import it. */
function modules() {
  const environment = client.nodeEnvironment({ mdnsInterfaces: ['lo'] });
  const ports = { environment, localPort: 0, p2pPort: 0, rendezvous: 'off' } as const;
  class Device extends device.Device {
    constructor(options: device.DeviceOptions = {}) {
      super({ ...ports, ...options });
    }
  }
  class SvcClient extends client.SvcClient {
    static override create(): client.SvcClient {
      return client.SvcClient.create({ environment, maxConnections: 64, mapsPort: false });
    }
  }
  return {
    'svc-connect/client': { ...client, SvcClient },
    'svc-connect/device': { ...device, Device },
    'node:dgram': { createSocket },
    'node:events': { once },
    'node:fs/promises': { readFile, writeFile },
  };
}

/** `svc admin`, with its result. */
async function admin(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await svcInProcess(['admin', ...args, '--data', data, '--json']);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return JSON.parse(stdout);
}

function end(party: unknown): Promise<void> | undefined {
  if (party instanceof client.SvcClient) return party.stop();
  return party instanceof device.Device ? party.close() : undefined;
}

async function document(name: string): Promise<string> {
  return (await readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8')).replaceAll('pr-home', PRODUCT);
}
