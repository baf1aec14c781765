/** A GET by https from servers with valid and invalid certificates, with real TLS. */

import type { RequestListener } from 'node:http';
import { createServer } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { HttpsRequest } from '../../../platform/environment.ts';
import { getHttps } from '../../../platform/node/https.ts';
import { type Authority, authority, type ServerPair, serverPair } from '../../support/certificates.ts';
import { connectProxy, httpsServer } from '../../support/https-server.ts';
import { TestProcess } from '../../support/process.ts';

let root: Authority;
let other: Authority;
let intermediate: Authority;
let good: ServerPair;

beforeAll(async () => {
  [root, other] = [await authority('Root'), await authority('Other root')];
  intermediate = await authority('Intermediate', root);
  good = await serverPair(root);
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const hello: RequestListener = (_, response) => void response.end('hello');

/** Starts a server and sends a request. */
async function ask(pair: ServerPair, listener = hello, options: Partial<HttpsRequest> & { host?: string } = {}) {
  const { port, close } = await httpsServer(pair, listener);
  closing.push(close);
  const { host = 'localhost', ...request } = options;
  return getHttps({ url: `https://${host}:${port}/there`, rootCerts: root.pem, timeout: 5000, limit: 4096, ...request });
}

describe('a server with a valid certificate', () => {
  test('is accepted by its name, and by its address', async () => {
    const answer = await ask(good);
    expect([answer.status, new TextDecoder().decode(answer.body)]).toEqual([200, 'hello']);
    expect((await ask(good, hello, { host: '127.0.0.1' })).status).toBe(200);
  });

  test('is accepted by a root whose text is indented, and has dashes in front', async () => {
    const rootCerts = root.pem.replace(/^/gm, '  ').replace('-----BEGIN', '--------BEGIN');
    expect((await ask(good, hello, { rootCerts })).status).toBe(200);
  });

  test('is asked with no-cache only where a fresh answer is required', async () => {
    const received: unknown[] = [];
    const listener: RequestListener = ({ headers }, response) => void response.end(String(received.push(headers['cache-control'])));
    await ask(good, listener);
    await ask(good, listener, { fresh: true });
    expect(received).toEqual([undefined, 'no-cache']);
  });

  test('may end its body by closing the connection', async () => {
    expect((await ask(good, (_, response) => response.socket?.end('HTTP/1.0 200 OK\r\n\r\nhello'))).body.length).toBe(5);
  });

  test('is accepted by an intermediate that it sends, and by the second of two roots', async () => {
    const pair = await serverPair(intermediate, { chain: [intermediate] });
    expect((await ask(pair, hello, { rootCerts: `${other.pem}\n${root.pem}` })).status).toBe(200);
  });

  test('is accepted by its own certificate as root', async () => {
    const pair = await serverPair(undefined);
    expect((await ask(pair, hello, { rootCerts: pair.cert })).status).toBe(200);
  });
});

const MANY_NAMES = Array.from({ length: 300 }, (_, i) => `a${i}.example`);
const LONG_NAME = `${Array(60).fill('abcde').join('.')}.example`;

async function expiredSigner(): Promise<ServerPair> {
  const signer = await authority('Old', root, -1);
  return serverPair(signer, { chain: [signer] });
}

describe('CERTIFICATE_VALIDATION_FAILED with the name of the host', () => {
  test.each<[string, () => Promise<ServerPair>, { host?: string }, RegExp]>([
    ['another root', () => serverPair(other), {}, /unknown authority/],
    ['another root that is sent along', () => serverPair(other, { chain: [other] }), {}, /unknown authority/],
    ['another name', () => serverPair(root, { names: ['elsewhere.example'] }), {}, /another name \(DNS:elsewhere.example\)/],
    ['many names', () => serverPair(root, { names: MANY_NAMES }), {}, /another name \(DNS:a0\.example, .*DNS:a4\.example and 295 more\)/],
    ['one long name', () => serverPair(root, { names: [LONG_NAME] }), {}, /another name \([^)]{200}\)/],
    ['a name where an address is requested', () => serverPair(root, { names: ['localhost'] }), { host: '127.0.0.1' }, /another name/],
    ['expired', () => serverPair(root, { from: -30, until: -1 }), {}, /has expired \(\d{4}-\d\d-\d\d\)/],
    ['an expired signer', expiredSigner, {}, /is signed by one that has expired \(/],
    ['not yet valid', () => serverPair(root, { from: 1 }), {}, /not yet valid \(\d{4}-\d\d-\d\d\), or this host's clock is wrong: it says/],
    ['self-signed', () => serverPair(undefined), {}, /self-signed/],
    ['a chain without its intermediate', () => serverPair(intermediate), {}, /chain is incomplete/],
  ])('%s', async (_, pair, options, message) => {
    const asked = ask(await pair(), hello, options);
    await expect(asked).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED', message: expect.stringMatching(message) });
    await expect(asked).rejects.toThrow(options.host ?? 'localhost');
  });

  test("a root that only the test knows, where the platform's roots count", async () => {
    const { port, close } = await httpsServer(good, hello);
    closing.push(close);
    const asked = getHttps({ url: `https://localhost:${port}/`, timeout: 5000, limit: 4096 });
    await expect(asked).rejects.toMatchObject({
      code: 'CERTIFICATE_VALIDATION_FAILED',
      message: expect.stringContaining('unknown authority'),
    });
  });

  test('the environment cannot disable the check', async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    closing.push(() => delete process.env.NODE_TLS_REJECT_UNAUTHORIZED);
    await expect(ask(await serverPair(other))).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED' });
  });
});

test('a root that TLS cannot parse is refused with its number', async () => {
  const bytes = Buffer.from(root.pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  bytes.fill(0, 8, 40);
  const damaged = `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64')}\n-----END CERTIFICATE-----\n`;
  await expect(ask(good, hello, { rootCerts: root.pem + damaged })).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('root certificate 2 is damaged'),
  });
});

const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc';

describe('an invalid answer', () => {
  test.each<[string, RequestListener, string, RegExp]>([
    ['a redirect', (_, response) => response.writeHead(302, { location: 'https://localhost/' }).end(), 'BAD_RESPONSE', /302.*not followed/],
    ['not found', (_, response) => response.writeHead(404).end(), 'BAD_RESPONSE', /404/],
    ['5 KiB where 4 are allowed', (_, response) => response.end('x'.repeat(5120)), 'BAD_RESPONSE', /4096 bytes/],
    ['a switch to another protocol', (_, response) => response.socket?.end(SWITCH), 'BAD_RESPONSE', /gave no answer/],
    [
      'a body that breaks off',
      (_, response) => response.writeHead(200, { 'content-length': '9' }).write('x', () => response.destroy()),
      'BAD_RESPONSE',
      /./,
    ],
  ])('%s', async (_, listener, code, message) => {
    await expect(ask(good, listener)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test('from a server without TLS is reported in plain words', async () => {
    const server = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push(() => server.close());
    const { port } = server.address() as { port: number };
    const asked = getHttps({ url: `https://127.0.0.1:${port}/`, timeout: 5000, limit: 100 });
    const message = '127.0.0.1 does not speak TLS correctly: what it sent is not TLS';
    await expect(asked).rejects.toMatchObject({ code: 'BAD_RESPONSE', message });
  });

  test('silence is TIMEOUT, and a signal ends the wait', async () => {
    await expect(ask(good, () => {}, { timeout: 30 })).rejects.toMatchObject({ code: 'TIMEOUT' });
    const stop = new AbortController();
    const asked = ask(good, () => stop.abort(), { signal: stop.signal });
    await expect(asked).rejects.toMatchObject({ code: 'STOPPED' });
    await expect(getHttps({ url: 'https://localhost/', timeout: 1000, limit: 1, signal: stop.signal })).rejects.toMatchObject({
      code: 'STOPPED',
    });
  });

  test('from a port without TLS is BAD_RESPONSE; no server is CONNECTION_REFUSED, a name without address DNS', async () => {
    const server = createServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('HTTP/1.1 200 OK\r\n\r\n'),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const request = { timeout: 5000, limit: 100 };
    await expect(getHttps({ url: `https://127.0.0.1:${port}/`, ...request })).rejects.toMatchObject({ code: 'BAD_RESPONSE' });
    await new Promise((resolve) => server.close(resolve));
    await expect(getHttps({ url: `https://127.0.0.1:${port}/`, ...request })).rejects.toMatchObject({ code: 'CONNECTION_REFUSED' });
    await expect(getHttps({ url: 'https://nowhere.invalid/', ...request })).rejects.toMatchObject({ code: 'DNS' });
  });
});

describe('HTTPS_PROXY', () => {
  const variables = { HTTPS_PROXY: '', NO_PROXY: '', NODE_TLS_REJECT_UNAUTHORIZED: '' };
  const set = (values: Partial<typeof variables>): void => {
    for (const [name, value] of Object.entries(values)) {
      process.env[name] = value;
      closing.push(() => delete process.env[name]);
    }
  };

  async function behindProxy(pair: ServerPair) {
    const target = await httpsServer(pair, hello);
    const proxy = await connectProxy(target.port);
    closing.push(proxy.close, target.close);
    set({ HTTPS_PROXY: proxy.url });
    const get = (host: string) => getHttps({ url: `https://${host}:${target.port}/`, rootCerts: root.pem, timeout: 5000, limit: 100 });
    return { proxy, get, port: target.port };
  }

  test('carries the request, and the server proves its own name through it', async () => {
    const { proxy, get, port } = await behindProxy(await serverPair(root, { names: ['station.example', '192.0.2.7'] }));
    expect((await get('station.example')).status).toBe(200);
    expect((await get('192.0.2.7')).status).toBe(200);
    expect(proxy.asked).toEqual([`station.example:${port}`, `192.0.2.7:${port}`]);
    await expect(get('other.example')).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED' });
  });

  test('does not make an address pass for localhost', async () => {
    const { get } = await behindProxy(await serverPair(root, { names: ['localhost'] }));
    await expect(get('192.0.2.7')).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED' });
  });

  test('without a scheme speaks HTTP', async () => {
    const { proxy, get } = await behindProxy(good);
    set({ HTTPS_PROXY: proxy.url.replace('http://', '') });
    expect((await get('localhost')).status).toBe(200);
    expect(proxy.asked.length).toBe(1);
  });

  test('by https must have a valid certificate before it receives a password, whatever the environment says', async () => {
    const { port, close } = await httpsServer(good, hello);
    closing.push(close);
    set({ HTTPS_PROXY: `https://me:secret@localhost:${port}`, NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    const asked = getHttps({ url: 'https://station.example/', timeout: 5000, limit: 100 });
    await expect(asked).rejects.toMatchObject({
      code: 'CERTIFICATE_VALIDATION_FAILED',
      message: expect.stringMatching(/the proxy.*unknown authority/),
    });
  });

  test('is not used where NO_PROXY names the host', async () => {
    const { proxy, get } = await behindProxy(good);
    set({ NO_PROXY: 'localhost' });
    expect((await get('localhost')).status).toBe(200);
    expect(proxy.asked).toEqual([]);
  });

  test('that names no HTTP proxy is refused with a sentence', async () => {
    set({ HTTPS_PROXY: 'socks5://127.0.0.1:1' });
    const asked = getHttps({ url: 'https://localhost/', timeout: 1000, limit: 100 });
    await expect(asked).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('HTTPS_PROXY') });
  });

  test('whose password is not percent-encoded is refused with a sentence without it', async () => {
    set({ HTTPS_PROXY: 'http://me:100%safe@127.0.0.1:1' });
    const error = await getHttps({ url: 'https://localhost/', timeout: 1000, limit: 100 }).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/HTTPS_PROXY.*%25/) });
    expect(String(error)).not.toContain('safe');
  });
});

describe('a faulty proxy', () => {
  /** Answers every request with these bytes, and reports when its peer has closed. */
  async function proxyThatSays(answer: string, timeout = 5000) {
    let gone = (): void => {};
    const left = new Promise<void>((resolve) => {
      gone = resolve;
    });
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('close', gone);
      socket.once('data', () => socket.write(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closing.push(() => new Promise((resolve) => server.close(resolve)));
    process.env.HTTPS_PROXY = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
    closing.push(() => delete process.env.HTTPS_PROXY);
    const problem = await getHttps({ url: 'https://station.example/', timeout, limit: 100 }).then(
      () => 'believed',
      ({ code, message }) => `${code}: ${message}`,
    );
    await left;
    return problem;
  }

  const forged = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello';
  test.each([
    ['answers in the place of the host', `HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n${forged}`, /CONNECTION_REFUSED: .*\(403\)/],
    ['answers before the tunnel is open', `HTTP/1.1 100 Continue\r\n\r\n${forged}`, /CONNECTION_REFUSED: .*\(100\)/],
    ['answers through a tunnel without TLS', `HTTP/1.1 200 OK\r\n\r\n${forged}`, /BAD_RESPONSE: the proxy .* spoke before/],
    ['requires a password', 'HTTP/1.1 407 Authenticate\r\ncontent-length: 0\r\n\r\n', /127\.0\.0\.1:\d+ refused.*407.*name:password@/],
    ['switches to another protocol', SWITCH, /: the proxy 127\.0\.0\.1:\d+ refused .*\(101\)/],
    ['speaks another protocol', 'SSH-2.0-OpenSSH_9.6\r\n', /BAD_RESPONSE: the proxy 127\.0\.0\.1/],
    ['sends endless headers', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`, /BAD_RESPONSE: the proxy .*overflow/i],
  ])('that %s is not trusted and does not delay the error', async (_, answer, problem) => {
    expect(await proxyThatSays(answer)).toMatch(problem);
  });

  test('that never answers is TIMEOUT, and nothing stays open', async () => {
    expect(await proxyThatSays('', 50)).toMatch(/TIMEOUT: station\.example did not answer by https through the proxy 127/);
  });

  test('that does not resolve, or does not listen, is named', async () => {
    closing.push(() => delete process.env.HTTPS_PROXY);
    const request = { url: 'https://localhost/', timeout: 5000, limit: 100 };
    process.env.HTTPS_PROXY = 'http://proxy.invalid:3128';
    await expect(getHttps(request)).rejects.toMatchObject({
      code: 'DNS',
      message: expect.stringContaining('the proxy proxy.invalid:3128'),
    });
    process.env.HTTPS_PROXY = 'http://127.0.0.1:1';
    await expect(getHttps(request)).rejects.toMatchObject({
      code: 'CONNECTION_REFUSED',
      message: expect.stringContaining('the proxy 127.0.0.1:1'),
    });
  });
});

describe('TLS is loaded for the first request by https, and not before', () => {
  const LOADED = 'process.moduleLoadList.filter((name) => /^NativeModule (https|tls|_tls_wrap)$/.test(name)).length';
  const dist = (file: string): string => JSON.stringify(new URL(`../../../dist/${file}`, import.meta.url).href);

  async function printed(program: string): Promise<string> {
    return (await new TestProcess(process.execPath, ['--input-type=module', '--eval', program]).succeeded()).trim();
  }

  test('by an environment', { tags: ['slow'] }, async () => {
    const output = await printed(`
      const { nodeEnvironment } = await import(${dist('platform/node/index.js')});
      const { getHttps } = nodeEnvironment();
      const before = ${LOADED};
      const { code } = await getHttps({ url: 'https://127.0.0.1:1/', timeout: 5000, limit: 1 }).catch((error) => error);
      console.log(before, code, ${LOADED} > 0);`);
    expect(output).toBe('0 CONNECTION_REFUSED true');
  });

  test('not by a device and a client with a pin, unless UDP is silent for a second', { tags: ['slow'] }, async () => {
    const output = await printed(`
      const { Device } = await import(${dist('device/index.js')});
      const { SvcClient } = await import(${dist('client/node.js')});
      const serverFingerprint = 'ab'.repeat(32);
      const station = { serverUrl: 'https://127.0.0.1:1', serverFingerprint };
      const device = new Device({ productId: 'p', deviceId: 'd', p2pPort: 0, localPort: 0, ...station });
      device.setPrivateKey(device.createPrivateKey());
      await device.start();
      const client = SvcClient.create();
      const connection = client.createConnection();
      connection.updateOptions({ PrivateKey: client.createPrivateKey(), ProductId: 'p', DeviceId: 'd', ServerKey: 'sk', DtlsHelloTimeout: 50, Local: false });
      connection.updateOptions({ ServerUrl: station.serverUrl, ServerFingerprint: serverFingerprint });
      await connection.connect().catch(() => {});
      console.log(connection.getRemoteChannelErrorCode(), ${LOADED});
      await Promise.all([client.stop(), device.close()]);`);
    expect(output).toBe('CONNECTION_REFUSED 0');
  });
});
