/**
 * An independent browser, Avahi's, in its own namespace, sees a device in another one: found by type and subtype,
 * resolved, changed, gone. `svc discover` sees that device, and Avahi's announcements.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endProcesses, TestProcess } from '../support/process.ts';
import { Namespace } from './namespaces.ts';

const PROGRAMS = ['avahi-daemon', 'avahi-browse', 'avahi-publish', 'dbus-daemon'];
const missing = process.env.SVC_LAB_MISSING ?? PROGRAMS.find((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);

/** ms for a step of Avahi. */
const PATIENCE = 20_000;

const DEVICE = `
import { Device } from './dist/device/index.js';
const device = new Device({ productId: 'pr-lab', deviceId: 'de-lab', localPort: 5700, p2pPort: 0, basestationAttach: false });
device.setPrivateKey(device.createPrivateKey());
device.enableMdns();
device.mdnsAddSubtype('_lab');
device.mdnsAddTxtItem('fn', 'Boiler');
await device.start();
for await (const line of process.stdin) {
  if (String(line).trim() === 'close') { await device.close(); process.exit(0); }
  device.mdnsAddTxtItem('room', String(line).trim());
}
`;

describe.skipIf(missing !== undefined)(`avahi-browse${missing === undefined ? '' : ` (skipped: needs ${missing})`}`, () => {
  let folder: string;
  let near: Namespace;
  let far: Namespace;
  let device: TestProcess;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-lab-mdns-'));
    near = new Namespace();
    far = new Namespace();
    execFileSync('ip', ['link', 'add', 'mdns0', 'netns', near.name, 'type', 'veth', 'peer', 'name', 'mdns0', 'netns', far.name]);
    for (const [namespace, address] of [
      [near, '10.77.0.1/24'],
      [far, '10.77.0.2/24'],
    ] as const) {
      namespace.run('ip', 'address', 'add', address, 'dev', 'mdns0');
      namespace.run('ip', 'link', 'set', 'mdns0', 'up');
    }
    await startAvahi();
    device = start(near, [process.execPath, '--input-type=module', '-e', DEVICE], { interactive: true });
  }, 60_000);

  afterAll(async () => {
    await endProcesses();
    near?.remove();
    far?.remove();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  /** A separate bus: Avahi serves its clients over the system's D-Bus. */
  async function startAvahi(): Promise<void> {
    const bus = join(folder, 'bus');
    writeFileSync(
      join(folder, 'bus.conf'),
      `<busconfig><type>system</type><listen>unix:path=${bus}</listen><auth>EXTERNAL</auth><policy context="default"><allow send_destination="*"/>
      <allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>`,
    );
    writeFileSync(
      join(folder, 'avahi.conf'),
      '[server]\nhost-name=browser\nuse-ipv6=no\nallow-interfaces=mdns0\n[wide-area]\nenable-wide-area=no\n',
    );
    start(far, ['dbus-daemon', `--config-file=${join(folder, 'bus.conf')}`, '--nofork', '--nopidfile']);
    await until('D-Bus', () => spawnSync('test', ['-S', bus]).status === 0);
    // Avahi keeps its pid file and socket in /run: a separate mount namespace keeps this machine's /run untouched.
    const run = `mount -t tmpfs none /run && exec avahi-daemon --no-drop-root --no-rlimits --no-chroot --no-proc-title -f ${join(folder, 'avahi.conf')}`;
    start(far, ['unshare', '--mount', 'sh', '-c', run]);
    await until('avahi-daemon', () => browse('_none._udp') !== null);
  }

  function start(namespace: Namespace, command: readonly string[], options: { interactive?: boolean } = {}): TestProcess {
    return new TestProcess('ip', ['netns', 'exec', namespace.name, ...command], { ...options, variables: busVariables() });
  }

  function busVariables(): NodeJS.ProcessEnv {
    return { DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${join(folder, 'bus')}` };
  }

  /** The services that Avahi has found, one resolved service a line; null when it does not answer. */
  function browse(type: string): string | null {
    const command = ['netns', 'exec', far.name, 'avahi-browse', '--parsable', '--resolve', '--terminate', type];
    const { status, stdout } = spawnSync('ip', command, { encoding: 'utf8', env: { ...process.env, ...busVariables() }, timeout: 5_000 });
    return status === 0 ? stdout : null;
  }

  function resolved(type: string): string[] {
    return (browse(type) ?? '').split('\n').filter((line) => line.startsWith('='));
  }

  async function until(what: string, done: () => boolean): Promise<void> {
    for (const end = Date.now() + PATIENCE; !done(); ) {
      if (Date.now() > end) throw new Error(`timed out: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  // Avahi takes only subtypes that begin with an underscore, which RFC 6763 §7.1 does not require.
  it.each(['_svc._udp', '_lab._sub._svc._udp'])(
    'resolves the device below %s',
    async (type) => {
      await until('the device', () => resolved(type).length > 0);
      const [line = ''] = resolved(type);
      expect(line).toContain(';mdns0;IPv4;pr-lab-de-lab;_svc._udp;local;pr-lab-de-lab.local;10.77.0.1;5700;');
      for (const item of ['productid=pr-lab', 'deviceid=de-lab', 'fn=Boiler']) expect(line).toContain(`"${item}"`);
    },
    2 * PATIENCE,
  );

  it(
    'and svc discover agree, on another host and on the same',
    () => {
      const expected = { productId: 'pr-lab', deviceId: 'de-lab', name: 'Boiler', addresses: ['10.77.0.1:5700'] };
      for (const namespace of [far, near]) expect(discovered(namespace, '--subtype', '_lab')).toMatchObject([expected]);
    },
    2 * PATIENCE,
  );

  it(
    "and svc discover agree on Avahi's own announcements, on another host and on the same",
    async () => {
      const items = ['productid=pr-avahi', 'deviceid=de-avahi', 'fn=Café'];
      const published = start(far, ['avahi-publish', '--service', 'pr-avahi-de-avahi', '_svc._udp', '5592', ...items]);
      await published.until('the service', () => (published.stderr.includes('Established') ? true : undefined));
      const expected = { productId: 'pr-avahi', deviceId: 'de-avahi', name: 'Café', addresses: ['10.77.0.2:5592'] };
      for (const namespace of [near, far]) {
        const [first, second, ...others] = discovered(namespace);
        expect([first, second, others]).toMatchObject([expected, { deviceId: 'de-lab' }, []]);
      }
      await published.end();
      await until('the goodbye', () => discovered(near).length === 1);
    },
    3 * PATIENCE,
  );

  function discovered(namespace: Namespace, ...options: string[]): { deviceId: string }[] {
    return JSON.parse(namespace.run(process.execPath, 'dist/svc/main.cjs', 'discover', '--json', ...options)).devices;
  }

  it(
    'sees a changed TXT record, and that the device has gone',
    async () => {
      device.write('cellar\n');
      await until('the changed item', () => resolved('_svc._udp').some((line) => line.includes('"room=cellar"')));
      device.write('close\n');
      await until('the goodbye', () => resolved('_svc._udp').length === 0);
      expect(browse('_svc._udp')).toBe('');
    },
    3 * PATIENCE,
  );
});
