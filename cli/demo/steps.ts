/**
 * The demo's steps, in the order a newcomer would take them. Each step throws when a check fails; its figure is its
 * measurement.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Processes } from './processes.ts';
import type { Report } from './report.ts';
import { DemoClient, type Stage } from './stage.ts';

const PRODUCT = 'pr-demo';
const DEVICE = 'de-demo';
/** ms between keep-alives of client and device: an outage shows within seconds. */
const KEEP_ALIVE = 1_000;
/** Bytes of the file that goes there and back, and of the one sent alongside the requests. */
const FILE_SIZE = 64 << 20;
const BULK_SIZE = 16 << 20;
const WEB_FILES = 24;
const REQUESTS = 200;
/** ms of the base station's outage, and ms in which the transfer must resume after it. */
const OUTAGE = 1_000;
const RECOVERY_LIMIT = 5_000;
/** Bytes of the file transferred meanwhile, and ms for all of it. */
const OUTAGE_SIZE = 16 << 20;
const OUTAGE_LIMIT = 60_000;

/** IPv4 address of an interface of this machine, neither loopback nor link-local; null for none. */
export function ownAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const usable = all.find(({ family, internal, address }) => family === 'IPv4' && !internal && !address.startsWith('169.254.'));
  return usable?.address ?? null;
}

/**
 * Starts the three processes: base station with its registry filled by `svc admin`, device attached, client connected.
 */
export async function setUp(report: Report, processes: Processes, folder: string): Promise<Stage> {
  const data = join(folder, 'station');
  // The socket is bound to the address that all use, so that it answers from there whatever address a client has.
  const host = ownAddress() ?? '127.0.0.1';
  const stationArguments = ['basestation', '--data', data, '--host', host, '--keep-alive', `${KEEP_ALIVE}`, '--json'];
  const { station, address } = await report.step('base station listens', async () => {
    const station = processes.start('base station', [...stationArguments, '--port', '0']);
    const { port, fingerprint } = await station.event('listening');
    const address = { url: `https://${host}:${port}`, port: Number(port), fingerprint: String(fingerprint) };
    return { station, address, figure: `UDP and HTTP on port ${port}`, values: { port: address.port } };
  });
  const deviceArguments = [
    ...['device', '--data', join(folder, 'device'), '--product', PRODUCT, '--device-id', DEVICE],
    ...['--server', address.url, '--server-fingerprint', address.fingerprint, '--json'],
  ];
  const keys = await report.step('keys are made, the device is registered', () => makeKeys(processes, folder, data, deviceArguments));
  const device = await report.step('device attaches, with a web server behind it', () =>
    startDevice(processes, folder, deviceArguments, keys),
  );
  const client = new DemoClient(processes.script('client', './client.js', []));
  const options = {
    ...{ ProductId: PRODUCT, DeviceId: DEVICE, DeviceFingerprint: keys.device, ServerConnectToken: keys.sct },
    // All three are on one machine, and this step is about the base station; a later one lets the connection find a
    // better path.
    Local: false,
    Rendezvous: false,
    ...{ ServerUrl: address.url, ServerFingerprint: address.fingerprint, KeepAliveInterval: KEEP_ALIVE },
  };
  const target = { options, keyFile: join(folder, 'client', 'key.pem') };
  const connect = () => client.call('connect', options, target.keyFile);
  await report.step('client connects through the base station', async () => {
    const start = performance.now();
    const { type, verified } = await connect();
    const ms = performance.now() - start;
    check(type === 'RELAY' && verified === 'pinned', `expected a pinned relay connection, got ${type}, ${verified}`);
    return { figure: `${ms.toFixed(1)} ms, ${verified}`, values: { connectMs: ms } };
  });
  return { folder, processes, stationArguments, station, stationPort: address.port, device: device.running, client, connect, target };
}

/** Keys of client and device. */
interface Keys {
  /** Full hex fingerprints. */
  readonly client: string;
  readonly device: string;
  readonly sct: string;
}

async function makeKeys(processes: Processes, folder: string, data: string, deviceArguments: readonly string[]) {
  const key = await processes.run(['key', 'create', '--state', join(folder, 'client'), '--json']);
  const made = await processes.run([...deviceArguments, '--init']);
  const keys: Keys = { client: String(key.fingerprint), device: String(made.fingerprint), sct: String(made.sct) };
  await processes.run(['admin', 'product', 'add', PRODUCT, '--data', data, '--json']);
  await processes.run(['admin', 'device', 'add', PRODUCT, DEVICE, '--fingerprint', keys.device, '--data', data, '--json']);
  return { ...keys, figure: `device ${keys.device.slice(0, 16)}…`, values: {} };
}

async function startDevice(processes: Processes, folder: string, deviceArguments: readonly string[], keys: Keys) {
  const web = join(folder, 'web');
  await writeWebFiles(web);
  const http = processes.script('web server', './http-server.js', [web]);
  const { port } = await http.event('listening');
  const allow = ['--allow', keys.client, '--tunnel', `web=http:127.0.0.1:${port}`];
  const running = processes.start('device', [...deviceArguments, '--local-port', '0', '--p2p-port', '0', ...allow]);
  await running.event('attached');
  return { running, figure: `${DEVICE} of ${PRODUCT}`, values: {} };
}

/** Reads a CoAP resource, sets it, and reads it again. */
export async function coapSteps(report: Report, { client }: Stage): Promise<void> {
  await report.step('CoAP: read, set and read again', async () => {
    const before = await client.call('coap', 'GET', '/thermostat/target');
    const wanted = before.text === '23.5' ? '19.5' : '23.5';
    const set = await client.call('coap', 'PUT', '/thermostat/target', wanted);
    const after = await client.call('coap', 'GET', '/thermostat/target');
    check(
      before.status === 205 && set.status === 204 && after.text === wanted,
      `expected ${wanted}, got ${JSON.stringify({ before, set, after })}`,
    );
    return { figure: `${before.text} → ${after.text} °C`, values: {} };
  });
}

/** Uploads a file and downloads it again. */
export async function streamSteps(report: Report, { client, folder }: Stage): Promise<void> {
  const file = join(folder, 'original.bin');
  const content = randomBytes(FILE_SIZE);
  await writeFile(file, content);
  const digest = sha256(content);
  await transfer(report, 'stream: 64 MiB to the device', digest, () => client.call('upload', file, 'demo.bin'));
  await transfer(report, 'stream: 64 MiB back', digest, async () => {
    const copy = join(folder, 'copy.bin');
    await client.call('download', 'demo.bin', copy);
    const back = await readFile(copy);
    return { bytes: back.length, sha256: sha256(back) };
  });
}

/** Downloads a folder from the web server behind the device through a TCP tunnel. */
export async function tunnelStep(report: Report, { client, folder }: Stage): Promise<void> {
  await report.step('TCP tunnel: a folder from the web server behind the device', async () => {
    const { port } = await client.call('openTunnel', 'web');
    const start = performance.now();
    const names = (await (await fetch(`http://127.0.0.1:${port}/`)).json()) as string[];
    const local = (await readdir(join(folder, 'web'))).sort();
    check(names.length === WEB_FILES && names.join() === local.join(), `the listing differs: ${names.length} names`);
    let bytes = 0;
    await Promise.all(
      names.map(async (name) => {
        const got = new Uint8Array(await (await fetch(`http://127.0.0.1:${port}/${name}`)).arrayBuffer());
        check(sha256(got) === sha256(await readFile(join(folder, 'web', name))), `${name} differs`);
        bytes += got.length;
      }),
    );
    await client.call('closeTunnel');
    const speed = bytes / 1e3 / (performance.now() - start);
    return {
      figure: `${names.length} files, ${(bytes / 1e6).toFixed(1)} MB equal, ${speed.toFixed(0)} MB/s`,
      values: { bytes, mbPerSecond: speed },
    };
  });
}

/** CoAP stays fast while a bulk stream runs on the same connection. */
export async function underBulkStep(report: Report, { client, folder }: Stage): Promise<void> {
  await report.step(`${REQUESTS} CoAP requests during a bulk stream`, async () => {
    const file = join(folder, 'bulk.bin');
    await writeFile(file, randomBytes(BULK_SIZE));
    const { latencies, wrong, bytes } = await client.call('requestsUnderBulk', REQUESTS, '/thermostat/temperature', file);
    const sorted = latencies.toSorted((a, b) => a - b);
    const [p50, p99] = [0.5, 0.99].map((share) => sorted[Math.floor(share * (sorted.length - 1))] as number) as [number, number];
    check(wrong === 0 && latencies.length === REQUESTS && bytes > 0, `${wrong} of ${latencies.length} answers were wrong, ${bytes} bytes`);
    return {
      figure: `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms alongside ${(bytes / 1e6).toFixed(0)} MB`,
      values: { p50, p99, bytes },
    };
  });
}

/** Stops the base station for a second during a transfer: the connection pauses and continues, and no byte is lost. */
export async function outageStep(report: Report, stage: Stage, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  await report.step(`base station ended by ${signal} and started again, under a transfer`, async () => {
    const content = randomBytes(OUTAGE_SIZE);
    const file = join(stage.folder, 'outage.bin');
    await writeFile(file, content);
    const uploading = stage.client.call('uploadSlowly', file, 'outage.bin');
    await delay(OUTAGE / 2);
    await stage.station.stop(signal);
    await delay(OUTAGE);
    stage.station = stage.processes.start('base station', [...stage.stationArguments, '--port', `${stage.stationPort}`]);
    await stage.station.event('listening');
    const { bytes, sha256: got, pause, rests } = await withTimeout(OUTAGE_LIMIT, uploading, 'the transfer did not continue');
    check(bytes === OUTAGE_SIZE && got === sha256(content), `SHA-256 differs: ${got} after ${bytes} bytes`);
    check(rests > 0, 'the transfer was over before the base station was stopped');
    check(pause <= OUTAGE + RECOVERY_LIMIT, `the transfer paused for ${pause.toFixed(0)} ms`);
    const answer = await stage.client.call('coap', 'GET', '/thermostat/target');
    check(answer.status === 205, `the connection answers ${answer.status}`);
    return {
      figure: `a pause of ${(pause / 1e3).toFixed(2)} s, the same connection, SHA-256 equal`,
      values: { pauseMs: pause, bytes },
    };
  });
}

async function transfer(
  report: Report,
  name: string,
  digest: string,
  run: () => Promise<{ bytes: number; sha256: string }>,
): Promise<void> {
  await report.step(name, async () => {
    const start = performance.now();
    const { bytes, sha256: got } = await run();
    const speed = bytes / 1e3 / (performance.now() - start);
    check(bytes === FILE_SIZE && got === digest, `SHA-256 differs: ${got} after ${bytes} bytes`);
    return { figure: `${speed.toFixed(0)} MB/s, SHA-256 equal`, values: { mbPerSecond: speed } };
  });
}

async function writeWebFiles(folder: string): Promise<void> {
  await mkdir(folder);
  for (let index = 0; index < WEB_FILES; index++)
    await writeFile(join(folder, `file-${String(index).padStart(2, '0')}.bin`), randomBytes(1 + index * 37_411));
}

export function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** @throws Error with the message unless `holds` */
export function check(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Error(message);
}

async function withTimeout<T>(ms: number, promise: Promise<T>, message: string): Promise<T> {
  const timeout = new AbortController();
  const late = delay(ms, undefined, { signal: timeout.signal }).then(() => {
    throw new Error(message);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timeout.abort();
    late.catch(() => {});
  }
}
