/** A whole base station in one process, and the command `svc basestation`. */

import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { Agent, get as httpsGet } from 'node:https';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import Database from 'libsql';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { basestationCommand } from '../../cli/basestation.ts';
import { runProgram } from '../../cli/frame/program.ts';
import { silentLog } from '../../platform/environment.ts';
import { getHttps } from '../../platform/node/https.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { encodeBinding, readBindingAnswer } from '../../protocol/stun/index.ts';
import { Host } from '../../runtime/host/index.ts';
import { readLastStart, readStatus } from '../../server/administration/index.ts';
import { type RunningBasestation, type StartOptions, type StationSettings, startBasestation } from '../../server/index.ts';
import { authority, serverPair } from '../support/certificates.ts';

let parent: string;
const started: RunningBasestation[] = [];

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'svc-start-'));
});
afterEach(async () => {
  for (const each of started.splice(0)) await each.close();
  rmSync(parent, { recursive: true });
});

async function start(options: Partial<StartOptions> = {}): Promise<RunningBasestation> {
  const station = await startBasestation({
    data: join(parent, 'data'),
    port: 0,
    log: silentLog,
    settings: { connections: 16, stunPort: 0 },
    ...options,
  });
  started.push(station);
  return station;
}

const fixture = (name: string): string => fileURLToPath(new URL(`fixtures/localhost.${name}.pem`, import.meta.url));

function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** An address of this machine that is not loopback. */
async function ownAddress(): Promise<string | undefined> {
  const { networkInterfaces } = await import('node:os');
  return Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address;
}

/** Number of tries, since another process may take a port that was free a moment ago. */
const TRIES = 20;

/** Starts a base station whose STUN finds its ports free. */
async function startWithStun(settings: Partial<StationSettings>): Promise<RunningBasestation> {
  for (let tries = 0; tries < TRIES; tries++) {
    const station = await start({ host: '127.0.0.1', settings: { connections: 16, ...settings } });
    if (station.stun.length === (settings.stunAddress === undefined ? 1 : 2)) return station;
    await station.close();
  }
  throw new Error(`STUN found its ports taken ${TRIES} times`);
}

/** Asks from a separate socket. @returns the answer, and its source */
async function askStun(address: string, port: number) {
  const socket = createSocket('udp4');
  try {
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    socket.send(encodeBinding(new Uint8Array(12)), port, address);
    const [answer, from] = (await once(socket, 'message')) as [Uint8Array, RemoteInfo];
    return { mapped: readBindingAnswer(answer)?.mapped, own: socket.address(), from };
  } finally {
    socket.close();
  }
}

describe('startBasestation', () => {
  test('reports attached devices while it runs, and records how it was started', { tags: ['slow'] }, async () => {
    const data = join(parent, 'data');
    const station = await start({ data, host: '127.0.0.1', url: 'https://localhost:7000' });
    expect(await readStatus(data)).toEqual({ attached: [] });
    const expected = {
      fingerprint: station.fingerprint,
      port: station.port,
      host: '127.0.0.1',
      url: 'https://localhost:7000',
      tlsProves: false,
    };
    expect(await readLastStart(data)).toEqual(expected);
    expect(station.start).toEqual(expected);
    await station.close();
    expect(await readStatus(data)).toBeNull();
  });

  test('serves UDP and HTTP on one port number, chosen by the system', { tags: ['slow'] }, async () => {
    const station = await start();
    expect(station.http).toEqual({ host: '127.0.0.1', port: station.port, secure: false });
    expect(await (await fetch(`http://127.0.0.1:${station.port}/health`)).json()).toEqual({ status: 'ok' });
    const environment = nodeEnvironment();
    const client = await Host.open(environment, { identity: environment.crypto.generateKey(), binds: [{ port: 0 }] });
    const session = await client.dials.connect({ name: 'station', address: '127.0.0.1', port: station.port, pin: station.fingerprint });
    expect(session.peer.fingerprint).toBe(station.fingerprint);
    await client.close();
  });

  test('answers STUN on the port after its own, while it runs', { tags: ['slow'] }, async () => {
    const station = await startWithStun({});
    expect(station.stun).toEqual([{ port: station.port + 1, responsePort: true }]);
    const { mapped, own, from } = await askStun('127.0.0.1', station.port + 1);
    expect(mapped).toEqual({ address: '127.0.0.1', port: own.port });
    expect(from).toMatchObject({ address: '127.0.0.1', port: station.port + 1 });
    expect(station.stats().stun).toBe(1);
    await station.close();
    const again = createSocket('udp4').bind(station.port + 1, '127.0.0.1');
    await once(again, 'listening');
    again.close();
  });

  // On other systems 127.0.0.2 is not an address of the machine.
  test.runIf(process.platform === 'linux')('answers STUN at a second address from there', { tags: ['slow'] }, async () => {
    const station = await startWithStun({ stunAddress: '127.0.0.2' });
    const port = station.port + 2;
    expect(station.stun).toEqual([
      { port: station.port + 1, responsePort: true },
      { address: '127.0.0.2', port, responsePort: true },
    ]);
    expect((await askStun('127.0.0.2', port)).from).toMatchObject({ address: '127.0.0.2', port });
  });

  test('refuses meaningless STUN settings before anything is opened', async () => {
    const wrong = start({ host: '127.0.0.1', settings: { stunAddress: '127.0.0.1' } });
    await expect(wrong).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('give STUN a second one') });
    expect(existsSync(join(parent, 'data'))).toBe(false);
  });

  test('names its key and its UDP port at /.well-known/svc, over HTTP and HTTPS', { tags: ['slow'] }, async () => {
    const clear = await start();
    const { expires, ...named } = (await (await fetch(`http://127.0.0.1:${clear.port}/.well-known/svc`)).json()) as { expires: string };
    expect(named).toEqual({ fingerprint: clear.fingerprint, port: clear.port });
    expect(Date.parse(expires) - Date.now()).toBeGreaterThan(86_000_000);
    const secure = await start({ data: join(parent, 'secure'), tls: { certFile: fixture('cert'), keyFile: fixture('key') } });
    const ca = readFileSync(fixture('cert'), 'utf8');
    const answer = await getHttps({ url: `https://localhost:${secure.port}/.well-known/svc`, rootCerts: ca, timeout: 5000, limit: 4096 });
    expect(JSON.parse(new TextDecoder().decode(answer.body))).toMatchObject({ fingerprint: secure.fingerprint, port: secure.port });
  });

  test('uses a changed certificate for new connections, and ends no old ones', { tags: ['slow'] }, async () => {
    const root = await authority('Root');
    const tls = { certFile: join(parent, 'cert.pem'), keyFile: join(parent, 'key.pem') };
    const install = async (): Promise<void> => {
      const { cert, key } = await serverPair(root);
      writeFileSync(tls.certFile, cert);
      writeFileSync(tls.keyFile, key);
    };
    await install();
    const station = await start({ tls });
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: root.pem });
    const get = (): Promise<{ reused: boolean; serial: string }> =>
      new Promise((resolve, reject) => {
        const request = httpsGet({ host: 'localhost', port: station.port, path: '/.well-known/svc', agent }, (response) => {
          const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
          response.resume().on('end', () => setImmediate(() => resolve({ reused: request.reusedSocket, serial })));
        });
        request.on('error', reject);
      });
    const { serial } = await get();
    await install();
    await station.reloadCertificates();
    expect(await get()).toEqual({ reused: true, serial });
    agent.destroy();
    const fresh = await get();
    expect([fresh.reused, fresh.serial === serial]).toEqual([false, false]);
    agent.destroy();
  });

  test('serves REST without TLS only on loopback, WebSockets on all addresses, and with TLS both on all', { tags: ['slow'] }, async () => {
    const clear = await start();
    const own = await ownAddress();
    if (own !== undefined) {
      const answers = ['health', 'svc/v1'].map(async (path) => (await fetch(`http://${own}:${clear.port}/${path}`)).status);
      expect(await Promise.all(answers)).toEqual([404, 426]);
    }
    const secure = await start({ data: join(parent, 'secure'), tls: { certFile: fixture('cert'), keyFile: fixture('key') } });
    expect(secure.http.secure).toBe(true);
    expect(await connects('127.0.0.1', secure.port)).toBe(true);
    if (own !== undefined) expect(await connects(own, secure.port)).toBe(true);
  });

  test('warns of a separate HTTP address, unless it is loopback', { tags: ['slow'] }, async () => {
    const warn = vi.fn();
    await start({ httpHost: '0.0.0.0', log: { ...silentLog, warn } });
    expect(warn).toHaveBeenCalledWith(expect.stringContaining('in clear'), { host: '0.0.0.0' });
    warn.mockClear();
    await start({ data: join(parent, 'b'), httpHost: '127.0.0.1', log: { ...silentLog, warn } });
    expect(warn).not.toHaveBeenCalled();
  });

  test('keeps its fingerprint over restarts, and frees port and directory when it closes', { tags: ['slow'] }, async () => {
    const first = await start();
    await Promise.all([first.close(), first.close()]);
    const second = await start({ port: first.port });
    expect([second.port, second.fingerprint]).toEqual([first.port, first.fingerprint]);
  });

  test('refuses a directory in use, and a port in use of either kind, with one line', { tags: ['slow'] }, async () => {
    const first = await start();
    await expect(start()).rejects.toMatchObject({ code: 'IN_USE' });
    await expect(start({ data: join(parent, 'b'), port: first.port })).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    const tcp = createServer();
    const port = await new Promise<number>((resolve) =>
      tcp.listen(0, '127.0.0.1', () => resolve((tcp.address() as { port: number }).port)),
    );
    await expect(start({ data: join(parent, 'c'), port })).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    tcp.close();
    expect((await start({ data: join(parent, 'c'), port: 0 })).port).toBeGreaterThan(0);
  });

  test('refuses unusable addresses and files with one line', { tags: ['slow'] }, async () => {
    await expect(start({ host: 'localhost' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(start({ host: '192.0.2.1' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(start({ httpHost: '192.0.2.1' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(start({ tls: { certFile: join(parent, 'none'), keyFile: fixture('key') } })).rejects.toMatchObject({ code: 'FAILED' });
    const tlsOf = (certFile: string, keyFile: string) => start({ tls: { certFile, keyFile } });
    const [none, cert, key] = [join(parent, 'none'), fixture('cert'), fixture('key')];
    await expect(tlsOf(none, key)).rejects.toThrow(`cannot read ${none}: no such file or directory`);
    await expect(tlsOf(key, key)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: `${key} is not a PEM certificate` });
    await expect(tlsOf(cert, cert)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: `${cert} is not a PEM private key` });
  });
});

describe('svc basestation', () => {
  /** Both streams, and `all` in order of arrival. */
  async function svc(...words: string[]): Promise<{ code: number; out: string; err: string; all: string }> {
    const captured = { out: '', err: '', all: '' };
    const spies = (['stdout', 'stderr'] as const).map((name) =>
      vi.spyOn(process[name], 'write').mockImplementation((chunk: unknown) => {
        captured[name === 'stdout' ? 'out' : 'err'] += String(chunk);
        captured.all += String(chunk);
        if (name === 'stdout' && captured.out === String(chunk)) process.emit('SIGTERM');
        return true;
      }),
    );
    try {
      const code = await runProgram(new Command('svc').addCommand(basestationCommand()), ['basestation', ...words]);
      return { code, ...captured };
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
  }

  test('prints one line when it is ready, and ends with 0 on SIGTERM', { tags: ['slow'] }, async () => {
    const data = join(parent, 'data');
    const { code, out } = await svc('--data', data, '--port', '0', '--stun-port', '0', '--json', '--log-level', 'error');
    const [listening, closed] = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(listening).toMatchObject({ event: 'listening', port: expect.any(Number), fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(listening.httpPort).toBe(listening.port);
    expect(listening.stun).toEqual([]);
    expect(closed).toEqual({ event: 'closed' });
    expect(code).toBe(0);
    expect(readFileSync(join(data, 'identity.pem'), 'utf8')).toContain('PRIVATE KEY');
    const text = await svc('--data', data, '--port', '0', '--log-level', 'error');
    expect(text.out).toMatch(
      new RegExp(`^base station ready on UDP port \\d+ and http://127\\.0\\.0\\.1:\\d+, fingerprint ${listening.fingerprint}\n`),
    );
  });

  test('ends with one line when its data directory is in use by another base station', { tags: ['slow'] }, async () => {
    const data = join(parent, 'data');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const stdout = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    try {
      const ended = runProgram(new Command('svc').addCommand(basestationCommand()), [
        'basestation',
        '--data',
        data,
        '--port',
        '0',
        '--json',
      ]);
      await vi.waitFor(() => expect(stdout.mock.calls.join('')).toContain('"event":"listening"'));
      const [sign] = readdirSync(data).filter((name) => name.startsWith('basestation.lock.'));
      rmSync(join(data, sign!));
      await vi.advanceTimersByTimeAsync(10_000);
      vi.useRealTimers();
      expect(await ended).toBe(1);
      expect(stderr.mock.calls.join('')).toMatch(/another base station runs on [^\n]+\n/);
    } finally {
      vi.useRealTimers();
      stdout.mockRestore();
      stderr.mockRestore();
    }
  });

  test('prints first that it is ready, then its warnings, then how a device joins', { tags: ['slow'] }, async () => {
    const data = join(parent, 'data');
    const { all, err } = await svc('--data', data, '--port', '0', '--stun-port', '0', '--http-host', '0.0.0.0', '--log-level', 'warn');
    expect(err).toContain('HTTP without TLS outside this machine');
    const order = ['base station ready', 'HTTP without TLS', `svc admin device invite --data ${data}\n`, 'base station closed'];
    expect(order.map((text) => all.indexOf(text)).toSorted((a, b) => a - b)).toEqual(order.map((text) => all.indexOf(text)));
    expect(all.startsWith('base station ready')).toBe(true);
  });

  test('names the option for a UDP port in use', { tags: ['slow'] }, async () => {
    const taken = createSocket('udp4').bind(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address();
    const { code, err } = await svc('--data', join(parent, 'data'), '--host', '127.0.0.1', '--port', String(port), '--stun-port', '0');
    taken.close();
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`^svc: UDP port ${port} is in use: [^\n]* --port, [^\n]*\n$`));
  });

  test('refuses the data of a version before 0.1.0 with one line, and leaves the database as it is', async () => {
    const data = join(parent, 'data');
    const file = join(data, 'basestation.sqlite');
    mkdirSync(data);
    const raw = new Database(file);
    raw.exec("create table kysely_migration (name, timestamp); insert into kysely_migration values ('0006-invitations', 'x')");
    raw.exec('pragma journal_mode = wal');
    raw.close();
    const before = readFileSync(file);
    expect(await svc('--data', data, '--port', '0', '--stun-port', '0')).toMatchObject({
      code: 1,
      out: '',
      err: `svc: the database ${file} is of a version before 0.1.0: begin with a new data directory (INVALID_STATE)\n`,
    });
    expect(readFileSync(file).equals(before)).toBe(true);
    expect(statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0).toBe(0);
  });

  test('keeps --url until --no-url', { tags: ['slow'] }, async () => {
    const data = join(parent, 'data');
    const kept = async (...words: string[]) => {
      expect((await svc('--data', data, '--port', '0', '--stun-port', '0', '--log-level', 'error', ...words)).code).toBe(0);
      return (await readLastStart(data))?.url;
    };
    const url = 'https://station.example:7000';
    expect([await kept(), await kept('--url', url), await kept(), await kept('--no-url')]).toEqual([null, url, url, null]);
  });

  test.runIf(process.platform === 'linux')('names the STUN ports in a separate line', { tags: ['slow'] }, async () => {
    for (let tries = 1; ; tries++) {
      const free = await startWithStun({ stunAddress: '127.0.0.2' });
      await free.close();
      const at = ['--port', String(free.port), '--host', '127.0.0.1', '--stun-address', '127.0.0.2', '--log-level', 'warn'];
      const { code, out, err } = await svc('--data', join(parent, 'data'), ...at);
      if (tries < TRIES && (code !== 0 || /STUN (is off|answers at one)/.test(err))) continue;
      expect(out.split('\n')[1]).toBe(`STUN on UDP port ${free.port + 1} and ${free.port + 2} of 127.0.0.2`);
      return;
    }
  });

  test.each<[number, string[]]>([
    [2, ['--data', 'x', '--url', 'http://station.example']],
    [2, ['--data', 'x', '--url', `https://${'x'.repeat(60)}.${`${'y'.repeat(60)}.`.repeat(3)}example`]],
    [2, ['--data', 'x', '--port', '70000']],
    [2, ['--data', 'x', '--keep-alive', '10']],
    [2, ['--data', 'x', '--connects-per-device', '0']],
    [2, ['--data', 'x', '--stun-port', '65536']],
    [2, ['--data', 'x', '--stun-port', 'none']],
    [2, ['--data', 'x', '--stun-address', 'second.example']],
    [1, ['--data', '/tmp/svc-none', '--port', '0', '--host', '127.0.0.1', '--stun-address', '127.0.0.1']],
    [1, ['--data', '/tmp/svc-none', '--port', '14633', '--stun-port', '14633']],
    [2, ['--data', 'x', '--tls-cert', 'only']],
    [2, ['--data', 'x', '--log-level', 'loud']],
    [2, ['--data', 'x', 'surplus']],
    [1, ['--data', '/dev/null/x', '--port', '0']],
    [1, ['--data', '/tmp/svc-none', '--tls-cert', '/tmp/svc-none/cert.pem', '--tls-key', 'x']],
    [2, ['--data', 'x', '--host', 'localhost']],
    [2, ['--data', 'x', '--http-host', 'foo']],
    [2, ['--data', 'x', '--connections', '5', '--connections-per-address', '99']],
  ])('exits with %i and one line: %j', async (code, words) => {
    const result = await svc(...words);
    expect(result).toMatchObject({ code, out: '' });
    expect(result.err).toMatch(/^svc: [^\n]+\n$/);
    expect(result.err).not.toMatch(/internal error/);
  });
});
