/** `svc discover` in a simulation, and its options as a command. */
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { type DiscoverOptions, discover } from '../../cli/discover.ts';
import { Output } from '../../cli/frame/output.ts';
import { Device } from '../../device/index.ts';
import { dnsResponse, serviceRecords } from '../../protocol/discovery/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { nativeSimulation } from '../support/simulation.ts';

class Lan {
  readonly sim = nativeSimulation({ link: { delay: 1 } });
  readonly host = this.sim.host('person', { addresses: ['192.0.2.9/24'] });
  readonly stop = new AbortController();
  stdout = '';
  stderr = '';
  /** How the command ended. */
  result: unknown = 'runs';
  #devices = 0;

  async device(deviceId: string, name?: string): Promise<Device> {
    const environment = this.sim.host(deviceId, { addresses: [`192.0.2.${++this.#devices}/24`] });
    const device = new Device({ environment, productId: 'pr-1', deviceId, localPort: 5592, p2pPort: 0, basestationAttach: false });
    device.setPrivateKey(device.createPrivateKey());
    device.enableMdns();
    device.mdnsAddSubtype('thermostat');
    if (name !== undefined) device.mdnsAddTxtItem('fn', name);
    await this.sim.settle(device.start());
    await this.sim.run(3_000);
    return device;
  }

  start(options: DiscoverOptions): void {
    const sink = (name: 'stdout' | 'stderr') =>
      new Writable({
        write: (chunk, _encoding, done) => {
          this[name] += chunk;
          done();
        },
      });
    const output = new Output(options.json === true, { stdout: sink('stdout'), stderr: sink('stderr') });
    discover(options, { environment: this.host, output, signal: this.stop.signal }).then(
      () => {
        this.result = 'done';
      },
      (error: Error) => {
        this.result = error.message;
      },
    );
  }
}

describe('the list', () => {
  test('has a line for each device, in order, after two seconds', async () => {
    const lan = new Lan();
    await lan.device('de-2');
    await lan.device('de-1', 'Boiler\u001b[2K');
    lan.start({});
    await lan.sim.run(1_990);
    expect([lan.stdout, lan.result]).toEqual(['', 'runs']);
    await lan.sim.run(100);
    expect(lan).toMatchObject({
      stdout: 'DEVICE     NAME        ADDRESSES\npr-1.de-1  Boiler [2K  192.0.2.2:5592\npr-1.de-2  -           192.0.2.1:5592\n',
      stderr: '',
      result: 'done',
    });
  });

  test('as JSON has all that a device announces', async () => {
    const lan = new Lan();
    await lan.device('de-1', 'Boiler');
    lan.start({ json: true, timeout: 5_000, subtype: 'thermostat' });
    await lan.sim.run(5_100);
    expect([JSON.parse(lan.stdout), lan.stderr]).toEqual([
      {
        devices: [
          {
            productId: 'pr-1',
            deviceId: 'de-1',
            name: 'Boiler',
            addresses: ['192.0.2.1:5592'],
            instance: 'pr-1-de-1._svc._udp.local',
            txt: { productid: 'pr-1', deviceid: 'de-1', fn: 'Boiler' },
          },
        ],
      },
      '',
    ]);
  });

  test('of no device is a message for a person, and empty for a program', async () => {
    const lan = new Lan();
    await lan.device('de-1');
    lan.start({ subtype: 'other', timeout: 3_000 });
    await lan.sim.run(3_100);
    expect([lan.stdout, lan.stderr, lan.result]).toEqual([
      '',
      expect.stringMatching(/^no device answered within 3 s: check that /),
      'done',
    ]);
    const empty = new Lan();
    empty.start({ json: true });
    await empty.sim.run(2_100);
    expect([empty.stdout, empty.stderr]).toEqual(['{"devices":[]}\n', '']);
  });

  test('is without a device that said goodbye meanwhile, and shows an instance without ids by its name', async () => {
    const lan = new Lan();
    const device = await lan.device('de-1');
    const stranger = lan.sim.host('stranger', { addresses: ['192.0.2.66/24'] });
    const socket = stranger.mdns.open(stranger.mdns.links()[0]!, { received: () => {}, failed: () => {} });
    lan.start({ timeout: 5_000 });
    await lan.sim.run(500);
    const answers = serviceRecords({ name: 'printer', port: 9, subtypes: [], txt: [], addresses: ['fd00::9'] });
    socket.send(dnsResponse({ answers }), null);
    await lan.sim.settle(device.close());
    await lan.sim.run(5_000);
    expect(lan.stdout).toBe('DEVICE                   NAME  ADDRESSES\nprinter._svc._udp.local  -     [fd00::9]:9\n');
  });

  test('ends early at Ctrl-C, which is no success', async () => {
    const lan = new Lan();
    lan.start({});
    await lan.sim.run(100);
    lan.stop.abort();
    await lan.sim.run(0);
    expect(lan.result).toBe('interrupted');
  });
});

describe('--watch', () => {
  test('prints devices that appear, change and leave, until Ctrl-C', async () => {
    const lan = new Lan();
    lan.start({ watch: true });
    const device = await lan.device('de-1');
    device.mdnsAddTxtItem('fn', 'Boiler');
    await lan.sim.run(3_000);
    await lan.sim.settle(device.close());
    await lan.sim.run(3_000);
    const [add, update, remove] = [
      '+ pr-1.de-1  192.0.2.1:5592',
      '~ pr-1.de-1  Boiler  192.0.2.1:5592',
      '- pr-1.de-1  Boiler  192.0.2.1:5592',
    ];
    expect(lan.stdout).toBe(`${add}\n${update}\n${remove}\n`);
    expect([lan.stderr, lan.result]).toEqual(['searching for devices on the local network; Ctrl-C ends it\n', 'runs']);
    lan.stop.abort();
    await lan.sim.run(0);
    expect(lan.result).toBe('done');
  });

  test('as JSON is one document for each change', async () => {
    const lan = new Lan();
    lan.start({ watch: true, json: true });
    const device = await lan.device('de-1');
    await lan.sim.settle(device.close());
    await lan.sim.run(3_000);
    const documents = lan.stdout
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text));
    expect(documents).toMatchObject([
      { event: 'add', deviceId: 'de-1' },
      { event: 'remove', deviceId: 'de-1' },
    ]);
    lan.stop.abort();
    await lan.sim.run(0);
  });
});

describe('wrong use', () => {
  test.each([
    [['--watch', '--timeout', '5'], '--watch and --timeout exclude each other'],
    [['--timeout', '0'], 'Expected 1 to 3600 seconds'],
    [['--subtype', 'a.b'], 'A subtype is 1 to 63 printable characters'],
  ])('is refused: %s', async (args, expected) => {
    const { code, stdout, stderr } = await svcInProcess(['discover', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(expected);
  });
});

test('its help explains the signs, and that a name is no proof', async () => {
  const { code, stdout } = await svcInProcess(['discover', '--help']);
  expect(code).toBe(0);
  for (const part of ['--watch', '--subtype', '--timeout', '--json', '~ for a changed one', 'can announce any device'])
    expect(stdout).toContain(part);
});
