/** A client whose uplink changes under a transfer, on real stacks: its cable to one home is cut, and it has another one, to a second. */
import { beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { record } from '../figures.ts';
import type { Namespace } from '../namespaces.ts';
import { connect } from './internet.ts';
import { type LabDevice, labWithProducts } from './products.ts';

/** ms until a change is noticed, and the stall after that. */
const NOTICE = 1_000;
const STALL = 1_000;
const TIME = 6_000;
const BYTES = 3_000_000;
const CHANGE_AFTER = 2_000;

vi.setConfig({ testTimeout: 60_000 });

labWithProducts('an uplink', { keys: 1 }, (lab) => {
  let host: Namespace;
  let client: Child;
  let device: LabDevice;

  beforeAll(async () => {
    const { internet, products } = lab;
    const [home, other] = [internet.home('client', 'port'), internet.home('client', 'port')];
    host = home.host;
    connect([host, 'eth1', ['10.9.0.2/24']], [other.boxes[0]!, 'second', []]);
    other.boxes[0]!.ip('link set dev second master lan\naddress add 10.9.0.1/24 dev lan');
    host.ip('route add default via 10.9.0.1 dev eth1 metric 200');
    device = await products.device(internet.home('device', 'port').host, 'de-uplink', '--no-mdns');
    client = products.client(host);
  });

  it.each([
    ['relayed', false],
    ['direct', true],
  ])('that is cut under a %s transfer stalls it for a second at most after that was noticed', async (way, isDirect) => {
    const options = { ...device.options, PrivateKey: lab.products.keys[0]!.pem, Rendezvous: isDirect };
    await client.call('connect', { name: way, options });
    if (isDirect) await client.call('settled', { name: way, limit: 15_000, untilDirect: true });
    const stall = client.call<number>('stall', { name: way, bytes: BYTES, time: TIME });
    await new Promise((resolve) => setTimeout(resolve, CHANGE_AFTER));
    host.ip('link set dev eth0 down');
    const longest = await stall;
    host.ip('link set dev eth0 up\nroute add default via 192.168.1.1 dev eth0');
    record(`stall of a ${way} transfer whose uplink changes, ms`, 'ours', longest, { atMost: NOTICE + STALL });
    expect(longest).toBeLessThan(NOTICE + STALL);
    await client.call('close', { name: way });
  });
});
