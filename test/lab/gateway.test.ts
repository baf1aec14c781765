/**
 * A real router, miniupnpd over nftables, between a host and the outside: a port mapped by PCP or NAT-PMP is reached
 * from outside. It also shows the effect of a hop limit: a datagram with 1 ends there, its neighbours do not.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcesses, TestProcess } from '../support/process.ts';
import { Namespace } from './namespaces.ts';
import { connect } from './paths/internet.ts';

const PROGRAMS = ['miniupnpd', 'nft'];
const missing = process.env.SVC_LAB_MISSING ?? PROGRAMS.find((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);

/** ms for a step. */
const PATIENCE = 20_000;

const RULES = `table inet filter {
  chain forward { type filter hook forward priority 0; policy accept; jump miniupnpd; }
  chain miniupnpd { }
  chain prerouting { type nat hook prerouting priority -100; policy accept; jump prerouting_miniupnpd; }
  chain postrouting { type nat hook postrouting priority 100; policy accept; jump postrouting_miniupnpd; oifname "wan" masquerade; }
  chain prerouting_miniupnpd { }
  chain postrouting_miniupnpd { }
}
`;

const MINIUPNPD = `ext_ifname=wan
listening_ip=lan
enable_natpmp=yes
enable_upnp=no
secure_mode=yes
min_lifetime=60
max_lifetime=86400
http_port=0
uuid=00000000-0000-0000-0000-000000000000
allow 1024-65535 192.168.1.0/24 1024-65535
deny 0-65535 0.0.0.0/0 0-65535
`;

/** Maps port 5000 by the protocol in its argument, prints the mapping and arriving datagrams, and closes on input. */
const INSIDE = `
import { nodeEnvironment } from './dist/platform/node/index.js';
import { PortMapper } from './dist/runtime/port-mapping/index.js';
const way = process.argv[1];
const { clock, crypto, log, network: all } = nodeEnvironment();
const socket = await all.bind({ port: 5000, receive: (datagram) => console.log('received ' + Buffer.from(datagram)) });
const network = { ...all, ...(way === 'NAT-PMP' && { interfaces: undefined }) };
const mapper = new PortMapper({ environment: { clock, crypto, log, network }, port: socket.port });
mapper.start();
const look = setInterval(() => {
  if (mapper.mapped.length === 0) return;
  clearInterval(look);
  console.log('mapped ' + mapper.mapped.map(({ address, port }) => address + ':' + port).join());
}, 20);
process.stdin.once('data', async () => {
  await mapper.close();
  console.log('closed');
  process.exit();
});
`;

/**
 * Sends thirty datagrams outside, every third with a hop limit of 1. The argument: number of datagrams before it
 * switches to its own system calls.
 */
const LIMITED = `
import { nodeEnvironment } from './dist/platform/node/index.js';
const { network } = nodeEnvironment({ systemCallsAfter: Number(process.argv[1]) });
const socket = await network.bind({ port: 0, bulk: true, receive: () => {} });
const path = socket.path('11.22.33.1', 7000);
let left = 0;
for (let i = 0; i < 30; i++) {
  const bytes = Buffer.from(process.argv[1] + ' ' + i);
  if (i % 3 === 1) socket.sendWithHopLimit(bytes, path, 1);
  else socket.send(bytes, 0, bytes.length, path, () => ++left === 20 && socket.close());
}
`;

/** Prints arriving datagrams, and sends to the host and port that it reads. */
const OUTSIDE = `
import { createSocket } from 'node:dgram';
const socket = createSocket('udp4').bind(7000, () => console.log('ready'));
socket.on('message', (bytes) => console.log(String(bytes)));
for await (const line of process.stdin) {
  const [text, address, port] = String(line).trim().split(' ');
  socket.send(text, Number(port), address);
}
`;

describe.skipIf(missing !== undefined)(`behind a router${missing === undefined ? '' : ` (skipped: needs ${missing})`}`, () => {
  let folder: string;
  const namespaces: Namespace[] = [];
  let inside: Namespace;
  let outside: TestProcess;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-lab-gateway-'));
    const [host, router, internet] = [new Namespace(), new Namespace(), new Namespace()];
    namespaces.push(host, router, internet);
    inside = host;
    connect([router, 'lan', ['192.168.1.1/24']], [host, 'eth0', ['192.168.1.7/24']]);
    connect([router, 'wan', ['11.22.33.44/24']], [internet, 'eth0', ['11.22.33.1/24']]);
    host.run('ip', 'route', 'add', 'default', 'via', '192.168.1.1');
    router.run('ip', 'route', 'add', 'default', 'via', '11.22.33.1');
    router.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    writeFileSync(join(folder, 'rules'), RULES);
    writeFileSync(join(folder, 'conf'), MINIUPNPD);
    router.run('nft', '-f', join(folder, 'rules'));
    // Its pid file would otherwise be this machine's.
    const daemon = start(router, [
      'unshare',
      '--mount',
      'sh',
      '-c',
      `mount -t tmpfs none /run && exec miniupnpd -d -f ${join(folder, 'conf')}`,
    ]);
    await daemon.until('miniupnpd', () => (/Listening for NAT-PMP/.test(daemon.stderr + daemon.stdout) ? true : undefined));
    // The kernel reports a new link as up with a delay.
    while (!host.run('cat', '/sys/class/net/eth0/operstate').startsWith('up')) await new Promise((resolve) => setTimeout(resolve, 100));
    outside = script(internet, OUTSIDE, []);
    await outside.line((line) => line === 'ready');
  }, 60_000);

  afterAll(async () => {
    await endProcesses();
    for (const namespace of namespaces) namespace.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  function start(namespace: Namespace, command: readonly string[], interactive = false): TestProcess {
    return new TestProcess('ip', ['netns', 'exec', namespace.name, ...command], { interactive });
  }

  function script(namespace: Namespace, text: string, args: readonly string[]): TestProcess {
    return start(namespace, [process.execPath, '--input-type=module', '-e', text, '--', ...args], true);
  }

  it.each(['PCP', 'NAT-PMP'])(
    'a port mapped by %s is reached from outside, and deleted on close',
    async (way) => {
      const host = script(inside, INSIDE, [way]);
      const mapped = await host.line((line) => line.startsWith('mapped '));
      expect(mapped).toBe('mapped 11.22.33.44:5000');
      outside.write(`${way} 11.22.33.44 5000\n`);
      await host.line((line) => line === `received ${way}`);
      host.write('close\n');
      await host.line((line) => line === 'closed');
      expect(namespaces[1]!.run('nft', 'list', 'ruleset')).not.toContain('dnat');
    },
    2 * PATIENCE,
  );

  it.each(['Infinity', '0'])(
    'a hop limit of 1 ends at the router and belongs to one datagram, with system calls after %s datagrams',
    async (after) => {
      await script(inside, LIMITED, [after]).ended;
      const numbers = Array.from({ length: 30 }, (_, i) => i).filter((i) => i % 3 !== 1);
      for (const number of numbers) await outside.line((line) => line === `${after} ${number}`);
      const arrived = outside.lines.filter((line) => line.startsWith(`${after} `));
      expect(arrived).toEqual(numbers.map((number) => `${after} ${number}`));
    },
    PATIENCE,
  );
});
