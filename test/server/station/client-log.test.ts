/** What the base station logs about clients, and what no client can put into the log. */
import { beforeEach, describe, expect, test } from 'vitest';
import { encode } from '../../../protocol/cbor/index.ts';
import { ClientPath, encodeConnectRequest } from '../../../protocol/control/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

let fixture: ProductFixture;
let lines: Line[];
beforeEach(async () => {
  lines = [];
  fixture = new ProductFixture({
    log: (host, level, message, fields = {}) => host === 'station' && lines.push({ level, message, fields }),
  });
  await fixture.station();
});

const connects = (): Line[] => lines.filter(({ message }) => message === 'client connected');

describe("a client's application", () => {
  test('is logged with its connect, at debug', async () => {
    await fixture.attached();
    await fixture.connected({ AppName: 'Phone', AppVersion: '3.2' });
    expect(connects()).toEqual([
      {
        level: 'debug',
        message: 'client connected',
        fields: {
          device: `${ids.productId}.${ids.deviceId}`,
          address: expect.stringMatching(/^10\.[\d.]+:\d+$/),
          app: 'Phone',
          version: '3.2',
        },
      },
    ]);
  });

  test('is left out if the client names none', { tags: ['slow'] }, async () => {
    await fixture.attached();
    await fixture.connected();
    await fixture.connected({ AppVersion: '3.2' });
    expect(connects().map(({ fields }) => Object.keys(fields))).toEqual([
      ['device', 'address'],
      ['device', 'address', 'version'],
    ]);
  });

  test('of 33 bytes is refused as a malformed request', async () => {
    await fixture.raw.attached();
    const client = await fixture.raw.opened();
    const body = { ProductId: ids.productId, DeviceId: ids.deviceId, ServerKey: 'sk-a' };
    const connect = (app: object) => client.request('POST', ClientPath.CONNECT, encode({ ...body, ...app }));
    expect((await connect({ AppName: 'x'.repeat(33) })).status).toBe(400);
    expect((await connect({ AppVersion: 'x'.repeat(33) })).status).toBe(400);
    expect((await connect({ AppName: 'x'.repeat(32), AppVersion: 'x'.repeat(32) })).status).toBe(201);
  });

  test('does not let a stranger or a frequent client fill the log', { tags: ['slow'] }, async () => {
    await fixture.raw.attached();
    const client = await fixture.raw.opened();
    const app = { appName: 'MARK', appVersion: 'MARK' };
    for (let i = 0; i < 10; i++) {
      await client.connect(app);
      await client.connect({ ...app, serverKey: 'sk-x' });
      await client.connect({ ...app, deviceId: 'de-x' });
    }
    await fixture.sim.run(120_000);
    const marked = lines.filter((line) => JSON.stringify(line).includes('MARK'));
    expect(marked.length).toBeGreaterThan(0);
    expect(new Set(marked.map(({ level, message }) => `${level} ${message}`))).toEqual(new Set(['debug client connected']));
  });
});

test('a connect refused for its JWT is counted, and nothing of the token is logged', { tags: ['slow'] }, async () => {
  await fixture.raw.attached();
  const client = await fixture.raw.opened();
  const jwt = 'HEAD.CLAIMS.SIGNATURE';
  for (const serverKey of ['sk-jwt', 'sk-x']) await client.connect({ serverKey, jwt });
  await client.request('POST', ClientPath.CONNECT, encodeConnectRequest({ ...ids, jwt }));
  await fixture.sim.run(120_000);
  const refused = lines.filter(({ message }) => message === 'connect refused');
  expect(refused.map(({ level, fields }) => [level, fields.reason])).toEqual([
    ['debug', 'invalid JWT'],
    ['debug', 'unknown server key'],
    ['debug', 'unknown server key'],
  ]);
  expect(JSON.stringify(lines)).not.toMatch(/HEAD|CLAIMS|SIGNATURE/);
});
