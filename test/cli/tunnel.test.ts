/** `svc tunnel`, part by part: the command line, its output, and a service over standard input and output. */
import { closeSync, fstatSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { isLoopback, reachedAt } from '../../cli/frame/loopback.ts';
import { Output } from '../../cli/frame/output.ts';
import { TunnelNews } from '../../cli/tunnel/news.ts';
import { missingService } from '../../cli/tunnel/offered.ts';
import { givenServices } from '../../cli/tunnel/services.ts';
import { carry, endDescriptor } from '../../cli/tunnel/stdio.ts';
import { type Connection, type ForwardedService, LocalError, RemoteError } from '../../client/node.ts';
import type { ByteStream } from '../../platform/node/index.ts';
import { encodeTunnelServiceIds } from '../../protocol/records/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { TextStream } from './text-stream.ts';

describe('the given services', () => {
  const given = (services: string[], udp: string[] = [], localPort?: number): ForwardedService[] =>
    givenServices({ services, udp, localPort });

  test.each<[string[], string[], number | undefined, ForwardedService[]]>([
    [[], [], undefined, []],
    [['web'], [], undefined, [{ kind: 'tcp', id: 'web' }]],
    [['web'], [], 8081, [{ kind: 'tcp', id: 'web', localPort: 8081 }]],
    [['a:b:80'], [], undefined, [{ kind: 'tcp', id: 'a:b', localPort: 80 }]],
    [[], ['names'], 0, [{ kind: 'udp', id: 'names', localPort: 0 }]],
    // The option alone, before or after the service.
    [['names'], [''], undefined, [{ kind: 'udp', id: 'names' }]],
    [[], [''], undefined, []],
    [
      ['web:8081', 'ssh:0'],
      ['dns:8081', 'time'],
      undefined,
      [
        { kind: 'tcp', id: 'web', localPort: 8081 },
        { kind: 'tcp', id: 'ssh', localPort: 0 },
        { kind: 'udp', id: 'dns', localPort: 8081 },
        { kind: 'udp', id: 'time' },
      ],
    ],
  ])('of %j, --udp %j, --local-port %j are parsed', (services, udp, localPort, wanted) => {
    expect(given(services, udp, localPort)).toEqual(wanted);
  });

  test.each<[string[], string[], number | undefined, RegExp]>([
    [['web:'], [], undefined, /"web:": the local port after ":" .* as in web:8081/],
    [['web:65536'], [], undefined, /65535/],
    [['web:x'], [], undefined, /65535/],
    [[':80'], [], undefined, /is not a service/],
    [['a/b'], [], undefined, /is not a service/],
    [['web', 'ssh'], [], 80, /--local-port goes with one service/],
    [['web:80'], [], 80, /--local-port goes with one service/],
    [[], [], 80, /--local-port goes with one service/],
    [['a:80', 'b:80'], [], undefined, /two services want the local port 80/],
  ])('of %j, --udp %j, --local-port %j are refused', (services, udp, localPort, message) => {
    expect(() => given(services, udp, localPort)).toThrow(message);
  });
});

test.each([
  ['tunnel web --stdio --udp', /leave --udp out/],
  ['tunnel --stdio', /names? one, as in svc tunnel --stdio ssh/],
  ['tunnel a b --stdio', /names? one, as in/],
  ['tunnel a:80 --stdio', /opens no local port/],
  ['tunnel a --stdio --listen 127.0.0.1', /opens no local port/],
  ['tunnel a --stdio --json', /--json has no effect with --stdio/],
  ['tunnel a --stdio --server-key k --jwt -', /standard input belongs to the service/],
  ['tunnel a --stdio --sct -', /standard input belongs to the service/],
  ['tunnel --listen 127.0.0.1', /--listen has no effect without a service/],
  ['tunnel a --listen localhost', /numeric/],
])('%s is refused before anything is connected', async (line, message) => {
  expect(await svcInProcess(line.split(' '))).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
});

test.each([
  ['127.0.0.1', true, '127.0.0.1'],
  ['::1', true, '::1'],
  ['0.0.0.0', false, '127.0.0.1'],
  ['::', false, '::1'],
  ['192.168.1.7', false, '192.168.1.7'],
])('%s is loopback: %s; a program on this machine reaches it at %s', (address, loopback, reached) => {
  expect([isLoopback(address), reachedAt(address)]).toEqual([loopback, reached]);
});

test.each([
  [{ kind: 'tcp', id: 'names' }, 'the device has no TCP service "names" (NOT_FOUND): it offers web; UDP services need --udp: names'],
  [
    { kind: 'udp', id: 'web' },
    'the device has no UDP service "web" (NOT_FOUND): it offers names; TCP services are opened without --udp: web',
  ],
] as const)('a service of the other kind, %j, has its remedy', async (wanted, text) => {
  const offered: Record<string, Uint8Array> = {
    '/tcp-tunnels/services': encodeTunnelServiceIds(['web']),
    '/udp-tunnels/services': encodeTunnelServiceIds(['names']),
  };
  const get = async (path: string) => ({ status: 205, bytes: offered[path] });
  expect(await missingService({ get } as unknown as Connection, [wanted], '')).toMatchObject({ message: text });
});

describe('the output shows', () => {
  const WEB: ForwardedService = { kind: 'tcp', id: 'web' };
  const SSH: ForwardedService = { kind: 'tcp', id: 'ssh' };
  const gone = new RemoteError('CLOSED', 'the other end closed the connection');
  const absent = new RemoteError('NOT_ATTACHED', 'the device is not attached');
  const refusal = new RemoteError('STOPPED', 'the service refuses connections (ECONNREFUSED)');
  const connection = {
    getType: () => 'RELAY',
    paths: () => ({ paths: [] }),
    on: () => () => {},
  } as unknown as Connection;
  let now = 0;

  function captured(json = false): { news: TunnelNews; lines: () => string[] } {
    const streams = { stdout: new TextStream(), stderr: new TextStream() };
    const lines = () => (json ? streams.stdout : streams.stderr).text.split('\n').slice(0, -1);
    return { news: new TunnelNews(new Output(json, streams), 'pr.de', { now: () => now }), lines };
  }

  test('an outage: its beginning, why the first attempt failed, and its end', () => {
    const { news, lines } = captured();
    news.report({ kind: 'connected', connection });
    news.report({ kind: 'lost', error: gone });
    for (let i = 0; i < 5; i++) news.report({ kind: 'lost', error: absent });
    news.report({ kind: 'connected', connection });
    news.report({ kind: 'lost', error: null });
    expect(lines()).toEqual([
      'the connection to pr.de ended: the other end closed the connection; connecting again',
      expect.stringMatching(/^not yet: the device is not attached \(NOT_ATTACHED\): .*; trying until Ctrl-C$/),
      'connected to pr.de again, through the base station',
      'the connection to pr.de ended: it was closed; connecting again',
    ]);
  });

  test('a rest: once, whatever follows from the same cause, and its end', () => {
    const { news, lines } = captured();
    news.report({ kind: 'connected', connection });
    for (const error of [gone, absent]) news.report({ kind: 'resting', error });
    news.report({ kind: 'resumed' });
    news.report({ kind: 'resting', error: gone });
    news.report({ kind: 'lost', error: gone });
    news.report({ kind: 'connected', connection });
    news.report({ kind: 'resting', error: gone });
    expect(lines().map((line) => line.split(':')[0])).toEqual([
      'the connection rests',
      'the connection continues',
      'the connection rests',
      'the connection to pr.de ended',
      'connected to pr.de again, through the base station',
      'the connection rests',
    ]);
  });

  test('refused connections: at once, then one line in 10 s for each service', () => {
    const { news, lines } = captured();
    const refuse = (service: ForwardedService): void => news.report({ kind: 'refused', service, error: refusal });
    for (let i = 0; i < 20; i++) refuse(WEB);
    refuse(SSH);
    now += 9_999;
    refuse(WEB);
    now += 1;
    refuse(WEB);
    expect(lines()).toEqual([
      'web: a connection was refused: the service refuses connections (ECONNREFUSED)',
      'ssh: a connection was refused: the service refuses connections (ECONNREFUSED)',
      'web: a connection was refused: the service refuses connections (ECONNREFUSED) (and 20 more before)',
    ]);
  });

  test('with --json one document for each event', () => {
    const { news, lines } = captured(true);
    news.report({ kind: 'connected', connection });
    news.report({ kind: 'resting', error: gone });
    news.report({ kind: 'lost', error: gone });
    news.report({ kind: 'connected', connection });
    news.report({ kind: 'refused', service: WEB, error: new LocalError('NOT_CONNECTED', 'none') });
    expect(lines().map((line) => JSON.parse(line))).toEqual([
      { event: 'resting', device: 'pr.de', error: 'CLOSED' },
      { event: 'lost', device: 'pr.de', error: 'CLOSED' },
      { event: 'connected', device: 'pr.de', over: 'relay' },
      { event: 'refused', device: 'pr.de', service: 'web', error: 'NOT_CONNECTED', message: 'none', before: 0 },
    ]);
  });
});

describe('a service over standard input and output', () => {
  /** The service's side of the stream: what it receives and sends. */
  class Service implements ByteStream {
    readonly got: string[] = [];
    readonly says = new PassThrough();
    isAborted = false;
    readonly #reading = this.says[Symbol.asyncIterator]();

    async read(): Promise<Uint8Array> {
      const { value, done } = await this.#reading.next();
      if (done === true) throw new RemoteError('END_OF_FILE', 'the stream has ended');
      return value;
    }

    async write(data: Uint8Array): Promise<void> {
      this.got.push(String(data));
    }

    async close(): Promise<void> {
      this.got.push('end');
    }

    stats = () => ({ transport: { acknowledged: 0, buffered: this.unacknowledged } });
    unacknowledged = 0;

    abort(): void {
      this.isAborted = true;
    }
  }

  const read = async (stream: PassThrough): Promise<string> => String((await stream[Symbol.asyncIterator]().next()).value);

  test.each(['program', 'service'])('keeps one direction when the other ends (%s first)', async (first) => {
    const [service, input, output] = [new Service(), new PassThrough(), new PassThrough()];
    const done = carry(service, { input, output, end: () => void output.end() });
    input.write('a');
    service.says.write('b');
    expect(await read(output)).toBe('b');
    if (first === 'program') {
      input.end('c');
      await new Promise((resolve) => input.once('close', resolve));
      expect(output.writableEnded).toBe(false);
      service.says.end();
    } else {
      service.says.end();
      await new Promise((resolve) => output.once('finish', resolve));
      input.end('c');
    }
    await done;
    expect(service.got).toEqual(['a', 'c', 'end']);
    expect([output.writableEnded, service.isAborted]).toEqual([true, false]);
  });

  test('ends both on failure: the stream is aborted, and standard input released', async () => {
    const [service, input, output] = [new Service(), new PassThrough(), new PassThrough()];
    const done = carry(service, { input, output, end: () => {} });
    service.says.destroy(new RemoteError('STOPPED', 'the service behind the stream failed'));
    await expect(done).rejects.toThrow('the service behind the stream failed');
    expect([service.isAborted, input.destroyed]).toEqual([true, true]);
  });

  test('passes on the answer that the device sent before it stopped reading', async () => {
    const [service, input, output] = [new Service(), new PassThrough(), new PassThrough()];
    const stopped = new RemoteError('STOPPED', 'the service behind the stream failed');
    service.write = () => Promise.reject(stopped);
    const done = carry(service, { input, output, end: () => {} });
    input.write('upload');
    await new Promise((resolve) => input.once('close', resolve));
    service.says.write('413');
    expect(await read(output)).toBe('413');
    expect(service.isAborted).toBe(false);
    service.says.destroy(stopped);
    await expect(done).rejects.toBe(stopped);
  });

  test('aborts the stream only when the device has what was read before standard input broke', async () => {
    const [service, input] = [new Service(), new PassThrough()];
    const broken = new Error('read EIO');
    const done = carry(service, { input, output: new PassThrough(), end: () => {} });
    service.unacknowledged = 1;
    let looks = 0;
    service.stats = () => {
      if (++looks === 3) service.unacknowledged = 0;
      expect(service.isAborted).toBe(false);
      return { transport: { acknowledged: 0, buffered: service.unacknowledged } };
    };
    input.destroy(broken);
    await expect(done).rejects.toBe(broken);
    expect([looks, service.isAborted]).toEqual([3, true]);
  });

  test('ends without an error when the reader of standard output has ended', async () => {
    const [service, input] = [new Service(), new PassThrough()];
    const closed = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
    const output = new Writable({ write: (_chunk, _encoding, done) => done(closed) });
    output.on('error', () => {});
    const done = carry(service, { input, output, end: () => {} });
    service.says.write('x');
    await done;
    expect([service.isAborted, input.destroyed]).toEqual([true, true]);
  });

  test('reads no more than the reader of standard output takes', async () => {
    const [service, input] = [new Service(), new PassThrough()];
    const taken: (() => void)[] = [];
    const output = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => void taken.push(done) });
    const done = carry(service, { input, output, end: () => {} });
    for (let i = 0; i < 3; i++) service.says.write('x');
    await new Promise((resolve) => setImmediate(resolve));
    expect(taken).toHaveLength(1);
    input.destroy();
    await expect(done).rejects.toThrow('Premature close');
  });

  test('ends for its reader while the process continues, and no socket gets the number of the descriptor', () => {
    const file = join(tmpdir(), `svc-descriptor-${process.pid}`);
    const descriptor = openSync(file, 'w');
    try {
      endDescriptor(descriptor);
      writeSync(descriptor, 'into nothing');
      expect(fstatSync(descriptor).isCharacterDevice()).toBe(true);
      expect(readFileSync(file, 'utf8')).toBe('');
    } finally {
      closeSync(descriptor);
      rmSync(file);
    }
  });
});
