/**
 * docs/walkthrough.md as it stands: its commands run one after the other as a new user would type them, and services
 * are processes. Differences: the product id and the ports, no multicast DNS, every service gets --json, and the join
 * string comes from a file, not from a terminal.
 *
 * @module-tag slow
 */
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { drawnProduct } from '../support/fixture/identifiers.ts';
import { ProcessFixture, type SvcProcess } from '../support/fixture/processes.ts';
import { Commands, type Finished } from './commands.ts';

const { svc } = new Commands('device');
const processes = new ProcessFixture();
/** The directory that the document gives its device. */
const DEVICE = 'data/walkthrough/device';

/** The end of a command that keeps running; through `cat` it is not at a terminal, as here. */
const STAYS = / (\| cat )?&$/;

const document = (await readFile(new URL('../../docs/walkthrough.md', import.meta.url), 'utf8')).replaceAll('pr-home', drawnProduct());

let folder: string;
let servers: Server[];
let station: SvcProcess;
let device: SvcProcess | undefined;
let throughStation: Finished | undefined;
/** The values of the text in `<…>`, and of its ports. */
const known = new Map<string, string>();
/** The output of each command, by the command as written. */
const ran = new Map<string, Finished>();

beforeAll(async () => {
  ({ folder } = processes);
  servers = await Promise.all(['camera', 'router'].map(serve));
  for (const [index, server] of servers.entries())
    known.set(`"Port": 800${index + 1}`, `"Port": ${(server.address() as AddressInfo).port}`);
  for (const [, kind = '', block = ''] of document.matchAll(/```(sh|json \S+)\n([\s\S]*?)```/g)) {
    if (kind === 'sh') for (const line of block.trim().split('\n')) await command(line);
    else await edit(kind.slice('json '.length), block);
  }
}, 120_000);

afterAll(() => {
  for (const server of servers ?? []) server.close();
});

test('every command succeeded, except those marked as refused', () => {
  const wrong = [...ran].filter(([line, { code }]) => (code !== 0) !== line.endsWith('# refused'));
  expect(wrong).toEqual([]);
  expect(ran.size).toBeGreaterThan(20);
});

test('each way of pairing made its user', () => {
  const users = output('svc iam users list').stdout.trim().split('\n');
  expect(users).toEqual(['admin', 'guest', 'ann', 'bob']);
  const paired = [...output('svc device audit show --event paired').stdout.matchAll(/Username=(\w+) Mode=(\w+)/g)];
  expect(paired.map(([, user, mode]) => [user, mode])).toEqual([
    ['admin', 'LocalInitial'],
    ['guest', 'PasswordInvite'],
    ['ann', 'PasswordOpen'],
    ['bob', 'LocalOpen'],
  ]);
});

test('the guest reaches the camera and nothing else, and explain gives the reason', () => {
  expect(known.get('answer of the tunnel')).toBe('this is the camera');
  const [camera, router] = [...ran].filter(([line]) => line.startsWith('svc device explain')).map(([, { stdout }]) => stdout);
  expect(camera).toBe('TcpTunnel:Connect is allowed by statement 0 of policy "CameraOnly" of role "CameraGuest"\n');
  expect(router).toBe('TcpTunnel:Connect is denied: no statement of role "CameraGuest" allows it here\n');
  expect(output('svc tunnel router').stderr).toMatch(/FORBIDDEN/);
});

test('the audit log has it, and is intact', () => {
  const log = output('svc device audit show --data').stdout;
  for (const entry of [
    /role-changed Username=guest From=Guest To=CameraGuest By=.*"admin"/,
    /setting-changed Setting=local-open-pairing Value=false By=/,
  ])
    expect(log).toMatch(entry);
  const denied = output('svc device audit show --event denied').stdout;
  expect(denied).toMatch(/Action=Thermostat:Set .*"guest"/);
  expect(denied).toMatch(/Action=TcpTunnel:Connect .*router.*"guest"/);
  expect(output('svc device audit verify').stdout).toMatch(/all unchanged/);
});

test('a local way of pairing through the base station is refused with the way that works', () => {
  expect(throughStation).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/LocalOpen is not possible through the base station: on the local network/),
  });
});

test('a deleted guest no longer has access', () => {
  const [, last] = [...ran].at(-1) as [string, Finished];
  expect(last.stderr).toMatch(/TOKEN_REJECTED.*your user was deleted or the device was set up again, ask for a new invitation/);
});

/** Returns the output of the first command with that beginning. */
function output(start: string): Finished {
  return [...ran].find(([line]) => line.startsWith(start))?.[1] as Finished;
}

/** Runs one line of a block. */
async function command(line: string): Promise<void> {
  const words = line.replace(/ # .*$/, '').replace(STAYS, '');
  const given = (words.match(/'[^']*'|<[^>]*>|[^\s]+/g) ?? []).slice(1).map(argument);
  // A client.
  if (given.includes('--state')) given.push('--no-local');
  if (STAYS.test(line)) return start(given);
  if (line.includes('LocalOpen')) throughStation = await pairThroughStation(given);
  let finished = await svc(...given);
  // Refusals are written within a second (docs/audit.md), and this queries sooner than a person would.
  while (line.includes('--event denied') && !finished.stdout.includes('router')) finished = await svc(...given);
  ran.set(line, finished);
  learn(given, finished);
}

/** The same pairing by a stranger elsewhere. */
function pairThroughStation(given: readonly string[]): Promise<Finished> {
  const server = ['https://127.0.0.1:4433', '<of the base station>'].map((name) => known.get(name) as string);
  const elsewhere = [
    '--server',
    server[0] as string,
    '--server-fingerprint',
    server[1] as string,
    '--state',
    join(folder, 'elsewhere'),
    '--no-local',
  ];
  return svc('pair', given[1] as string, '--mode', 'LocalOpen', '--username', 'far', ...elsewhere);
}

function argument(word: string): string {
  let text = word.replaceAll("'", '');
  for (const [name, value] of known) text = text.replaceAll(name, value);
  return text.startsWith('./') ? join(folder, text) : text;
}

async function start(given: string[]): Promise<void> {
  const [name, ...args] = given;
  if (name === 'basestation') {
    station = processes.station(...args, '--port', '0');
    const { port, fingerprint } = await station.event('listening');
    known.set('https://127.0.0.1:4433', `https://127.0.0.1:${port}`).set('<of the base station>', String(fingerprint));
  } else if (name === 'device') {
    await stopDevice();
    // Clients remember the address: the device keeps its port over restarts.
    const port = known.get('127.0.0.1:5592')?.split(':')[1] ?? '0';
    await writeFile(join(folder, 'join-string'), known.get('<join string>') ?? '');
    const words = args.map((each) => (each === '-' ? join(folder, 'join-string') : each));
    device = processes.device(...words, '--local-port', port, '--p2p-port', '0', '--no-mdns');
    const { localPort, pairingString, openPairing } = await device.event('started');
    known.set('127.0.0.1:5592', `127.0.0.1:${localPort}`).set('<pairing string>', String(pairingString));
    if (openPairing !== undefined) known.set('<open pairing>', String(openPairing));
    await device.event('attached');
  } else {
    const tunnel = processes.client('tunnel', ...args.map((each) => (each === '8080' ? '0' : each)));
    const { port } = await tunnel.event('listening');
    known.set('answer of the tunnel', await (await fetch(`http://127.0.0.1:${port}/`)).text());
  }
}

/** Keeps the parts of the output that a person would copy. */
function learn(given: readonly string[], { stdout }: Finished): void {
  if (given.includes('admin')) known.set('<join string>', /^svc:\S+$/m.exec(stdout)?.[0] ?? '');
  else if (given.includes('invite')) known.set('<invitation>', /^p=\S+$/m.exec(stdout)?.[0] ?? '');
}

/** Writes what an owner would, while the device is stopped. */
async function edit(name: string, block: string): Promise<void> {
  if (name === 'device.json') {
    let text = block;
    for (const [written, here] of known) text = text.replaceAll(written, here);
    await mkdir(join(folder, DEVICE), { recursive: true });
    return writeFile(join(folder, DEVICE, name), text);
  }
  await stopDevice();
  const file = join(folder, DEVICE, 'iam-configuration.json');
  const configuration = JSON.parse(await readFile(file, 'utf8'));
  configuration[name === 'policy' ? 'Policies' : 'Roles'].push(JSON.parse(block));
  await writeFile(file, JSON.stringify(configuration));
}

async function stopDevice(): Promise<void> {
  expect((await device?.end()) ?? 0).toBe(0);
  device = undefined;
}

async function serve(name: string): Promise<Server> {
  const server = createServer((_request, response) => response.end(`this is the ${name}`)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
