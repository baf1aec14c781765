/** Hostile peers and strangers: the base station answers only in its formats and stays usable. */
import { describe, expect, test } from 'vitest';
import { type CborValue, encode } from '../../../protocol/cbor/index.ts';
import { ClientPath, CONTENT_FORMAT_CBOR, DevicePath } from '../../../protocol/control/index.ts';
import { Random } from '../../../testing/index.ts';
import { ids, STATION_PORT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { seeds } from '../../support/tiered.ts';

const paths = [DevicePath.ATTACH, DevicePath.SCT, ClientPath.CONNECT, DevicePath.PUSH_SEND, '/p2p/connect', '/', '/iam/users', '/x'];
const fields = ['ProductId', 'DeviceId', 'SvcVersion', 'AppName', 'ServerKey', 'Sct', 'Jwt', 'Initiate', 'Wait', 'Redirected', 'x'];

const below = (random: Random, limit: number): number => Math.floor(random.fraction() * limit);

function value(random: Random, depth: number): CborValue {
  const made: (() => CborValue)[] = [
    () => ids.productId,
    () => ids.deviceId,
    () => 'sk-a',
    () => '',
    () => 'x'.repeat(below(random, 9_000)),
    () => '\u0000\u001b[2J',
    () => below(random, 2 ** 31),
    () => -1,
    () => null,
    () => true,
    () => random.bytes(below(random, 2_000)),
    () => (depth > 3 ? [] : Array.from({ length: below(random, 5) }, () => value(random, depth + 1))),
    () => (depth > 3 ? {} : body(random, depth + 1)),
  ];
  return made[below(random, made.length)]!();
}

function body(random: Random, depth = 0): Record<string, CborValue> {
  return Object.fromEntries(fields.filter(() => below(random, 2) === 0).map((field) => [field, value(random, depth)]));
}

function payload(random: Random): Uint8Array {
  if (below(random, 4) === 0) return random.bytes(below(random, 300));
  const bytes = encode(below(random, 5) === 0 ? value(random, 0) : body(random)).slice();
  if (below(random, 3) === 0 && bytes.length > 0) bytes[below(random, bytes.length)]! ^= 1 << below(random, 8);
  return bytes;
}

describe('any request of an authenticated peer', () => {
  test.each(seeds(1, 20))(
    'is answered below 5.00, changes nothing without a right, and disturbs no other peer (seed %i)',
    { tags: ['slow'] },
    async (seed) => {
      const fixture = new ProductFixture({ seed });
      // The requests take longer than a session without a credential may stay.
      const station = await fixture.station({ arrivalTimeout: 600_000 });
      const random = new Random(`hostile ${seed}`);
      const device = await fixture.raw.attached();
      const hostile = await fixture.raw.opened();
      for (let i = 0; i < 300; i++) {
        if (!hostile.channel.isOpen) await hostile.open();
        const method = (['GET', 'POST', 'PUT', 'DELETE'] as const)[below(random, 4)]!;
        const path = paths[below(random, paths.length)]!;
        const request = {
          method,
          path,
          payload: payload(random),
          ...(below(random, 3) === 0 ? {} : { contentFormat: CONTENT_FORMAT_CBOR }),
        };
        const { status } = await fixture.sim.settle(hostile.channel.request(request));
        expect(status === 201 || (status >= 400 && status < 500) || status === 503, `${status} for ${method} ${path}`).toBe(true);
      }
      expect(device.channel.isOpen).toBe(true);
      expect(station.basestation.attached).toBe(1);
      expect(station.basestation.stats().failures).toBe(0);
    },
  );
});

describe('any datagrams of strangers', () => {
  async function areDropped(seed: number): Promise<void> {
    const fixture = new ProductFixture({ seed });
    const station = await fixture.station();
    const random = new Random(`garbage ${seed}`);
    const device = await fixture.raw.attached();
    const client = await fixture.raw.client();
    const destination = { address: station.address, port: STATION_PORT };
    const devicePath = { address: device.environment.addresses[0]!, port: device.host.sockets.bound[0]!.port };
    const captured: Uint8Array[] = [];
    fixture.sim.onPacket = ({ data }) => {
      if (captured.length < 200) captured.push(data.slice());
      return undefined;
    };
    await client.open();
    const session = await client.reach();
    await fixture.sim.run(500);
    fixture.sim.onPacket = undefined;
    for (let i = 0; i < 1_000; i++) {
      const replayed = captured[below(random, captured.length)]!.slice();
      const bytes = below(random, 2) === 0 ? random.bytes(below(random, 100)) : replayed;
      if (bytes.length > 0 && below(random, 2) === 0) bytes[below(random, bytes.length)]! ^= 1 << below(random, 8);
      if (bytes.length > 0 && below(random, 4) === 0) bytes[0] = [0x80, 0x82, 0x83, 0x84, 0x85, 0x88, 0xc0, 0xe0][below(random, 8)]!;
      const source = below(random, 3) === 0 ? devicePath : { address: `198.51.100.${below(random, 250)}`, port: 1 + below(random, 65_000) };
      fixture.sim.inject(source, destination, bytes);
      if (i % 50 === 0) await fixture.sim.run(20);
    }
    await fixture.sim.run(1_000);
    expect(station.basestation.stats().failures).toBe(0);
    expect(device.channel.isOpen).toBe(true);
    expect(session.isOpen).toBe(true);
    expect((await client.connect()).status).toBe(201);
  }
  test.each(seeds(1, 1))('are dropped, and the device stays reachable (seed %i)', areDropped);
  test.each(seeds(2, 30))('are dropped, and the device stays reachable (seed %i)', { tags: ['slow'] }, areDropped);
});
