/** Clock, resolver and log of Node; timers keep no process alive. */
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { nodeEnvironment } from '../../../platform/node/environment.ts';
import { stderrLog } from '../../../platform/node/log.ts';
import { nodeMdns } from '../../../platform/node/mdns.ts';
import { LOOPBACK } from '../../support/multicast.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const { clock, network } = nodeEnvironment();

describe('multicast DNS', () => {
  afterEach(() => void vi.unstubAllEnvs());
  const places = (given?: string[]) => {
    const { mdns } = nodeEnvironment(given === undefined ? {} : { mdnsInterfaces: given });
    return mdns!.links().map(({ name }) => name.replace(/ IPv[46]$/, ''));
  };

  it('of tests is on loopback alone', () => {
    expect(new Set(places())).toEqual(new Set([LOOPBACK]));
  });

  it('has the interfaces of the options, else of SVC_MDNS_INTERFACES, else its own', () => {
    vi.stubEnv('SVC_MDNS_INTERFACES', `gone,${LOOPBACK}`);
    expect([new Set(places()), places(['gone'])]).toEqual([new Set([LOOPBACK]), []]);
    vi.stubEnv('SVC_MDNS_INTERFACES', undefined);
    expect(nodeEnvironment().mdns!.links()).toEqual(nodeMdns().links());
  });
});

describe('clock of Node', () => {
  it('is monotonic, and wall time is Unix time', () => {
    const [a, b] = [clock.now(), clock.now()];
    expect(b).toBeGreaterThanOrEqual(a);
    const before = Date.now();
    const wallTime = clock.wallTime();
    expect(wallTime).toBeGreaterThanOrEqual(before);
    expect(wallTime).toBeLessThanOrEqual(Date.now());
  });

  it('does not call noticeably early', async () => {
    const delays = [0, 0.3, 1, 1.7, 2.01, 5.5, -3, Number.NaN];
    const waits = delays.map(async (delay) => {
      const start = clock.now();
      await new Promise<void>((resolve) => void clock.schedule(delay, resolve));
      return clock.now() - start - Math.max(0, delay || 0);
    });
    for (const late of await Promise.all(waits)) expect(late).toBeGreaterThanOrEqual(-1);
  });

  it('can cancel, and takes delays beyond the range of setTimeout', async () => {
    const called: string[] = [];
    const cancels = [1, 2 ** 31 + 5, Number.POSITIVE_INFINITY].map((delay) => clock.schedule(delay, () => called.push(`${delay}`)));
    cancels[0]!();
    await new Promise<void>((resolve) => void clock.schedule(5, resolve));
    for (const cancel of cancels) cancel();
    expect(called).toEqual([]);
  });

  it('defers until after the promises of this turn', async () => {
    const order: string[] = [];
    clock.defer(() => order.push('deferred'));
    void Promise.resolve().then(() => order.push('promise'));
    await new Promise<void>((resolve) => clock.defer(resolve));
    expect(order).toEqual(['promise', 'deferred']);
  });

  it('runs `soon` callbacks after all promises of this callback and before any further IO', async () => {
    const order: string[] = [];
    const chain = async (): Promise<void> => {
      for (let turn = 0; turn < 10; turn++) await undefined;
      order.push('promises');
    };
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        setImmediate(() => {
          order.push('next turn');
          resolve();
        });
        process.nextTick(() => order.push('tick'));
        clock.soon(() => order.push('soon'));
        void chain();
      });
    });
    expect(order).toEqual(['tick', 'promises', 'soon', 'next turn']);
  });
});

describe('process', () => {
  it('stays for an open socket and ends when it is closed, whatever timers are pending', { tags: ['slow'] }, async () => {
    const outfile = join(temporaryDirectory(), 'program.mjs');
    const contents = `
        import { bindUdp } from ${JSON.stringify(new URL('../../../platform/node/udp.ts', import.meta.url).pathname)};
        import { clock } from ${JSON.stringify(new URL('../../../platform/node/clock.ts', import.meta.url).pathname)};
        import { silentLog } from ${JSON.stringify(new URL('../../../platform/environment.ts', import.meta.url).pathname)};
        const socket = await bindUdp({ port: 0, receive() {} }, 0, { log: silentLog });
        clock.schedule(3_600_000, () => {});
        clock.schedule(30, () => { process.stdout.write('socket kept me'); socket.close(); });`;
    await build({ stdin: { contents, resolveDir: '.' }, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
    expect(await new TestProcess(process.execPath, [outfile]).succeeded()).toBe('socket kept me');
  });
});

describe('resolver', () => {
  it('returns numeric addresses', async () => {
    expect(await network.resolve('192.0.2.1')).toEqual(['192.0.2.1']);
    expect(await network.resolve('2001:DB8::0')).toEqual(['2001:db8::']);
    const local = await network.resolve('localhost');
    expect(local.length).toBeGreaterThan(0);
    for (const address of local) expect(['127.0.0.1', '::1']).toContain(address);
    expect(new Set(local).size).toBe(local.length);
  });

  it('names what does not resolve', async () => {
    await expect(network.resolve('nothing.invalid')).rejects.toMatchObject({
      code: 'DNS',
      message: "nothing.invalid does not resolve to an address: check the name and this host's DNS",
    });
  });
});

describe('log', () => {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line.replace(/^\S+Z /, ''));

  it('writes one line per message, down to its level', () => {
    lines.length = 0;
    const log = stderrLog({ level: 'info', write });
    log.error('broken');
    log.warn('two\nlines', { error: 'Error: x\n    at y' });
    log.info('attached', { port: 4433, name: 'a b', empty: '', list: [1], none: undefined });
    log.debug('not this');
    log.trace('nor this');
    expect(lines).toEqual([
      'error broken\n',
      'warn two | lines error="Error: x | at y"\n',
      'info attached port=4433 name="a b" empty="" list=[1] none=undefined\n',
    ]);
  });

  it('escapes characters that could affect a terminal beyond their line', () => {
    lines.length = 0;
    stderrLog({ write }).error('\u001b[2Jgone', { from: '\u0007\u009b31m', name: 'a \u202eb\u{e0041}\u2028', joined: 'a\u200db' });
    expect(lines).toEqual(['error \\u001b[2Jgone from=\\u0007\\u009b31m name="a \\u202eb\\udb40\\udc41\\u2028" joined=a\u200db\n']);
  });

  it('begins each line with the time', () => {
    const stamped: string[] = [];
    stderrLog({ write: (line) => void stamped.push(line) }).error('x');
    expect(stamped[0]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z error x\n$/);
  });
});
