/** What a base station takes: a wrong type, and a setting that does not exist, is refused before anything is opened. */
import { expect, test } from 'vitest';
import { silentLog } from '../../platform/environment.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import * as entry from '../../server/index.ts';
import { Basestation, defaultSettings, startBasestation } from '../../server/index.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { expectFunctionsChecked, Fixed, OrNull, takenWrongly } from '../support/wrong-arguments.ts';

const settings = {
  ...defaultSettings,
  stunPort: new OrNull(0),
  stunAddress: new OrNull('192.0.2.1'),
  keepAlive: new OrNull({ interval: 1, retryInterval: 1, maxRetries: 1 }),
  routes: { routes: 1 },
};

test('the options of startBasestation', async () => {
  const options = {
    data: '/nowhere',
    port: 0,
    host: '127.0.0.1',
    url: new OrNull('https://station.example'),
    httpHost: '127.0.0.1',
    tls: { certFile: 'a', keyFile: 'b' },
    jwksAllow: ['192.0.2.1'],
    trustedProxies: ['192.0.2.1'],
    proxyHeader: 'forwarded',
    onEvent: Math.abs,
    log: silentLog,
  };
  expect(await takenWrongly('startBasestation', (given) => startBasestation(given), [options])).toEqual([]);
});

test('the options of an environment', async () => {
  const options = {
    log: silentLog,
    linkMtu: 1_500,
    maxPacketSize: 1_452,
    receiveBuffer: 1 << 20,
    systemCallsAfter: 0,
    mdnsInterfaces: ['eth0'],
  };
  expect(await takenWrongly('nodeEnvironment', nodeEnvironment, [options])).toEqual([]);
});

test('the options and settings of Basestation.open', async () => {
  const environment = new ProductFixture().host('station');
  const identity = environment.crypto.generateKey();
  const parts = { identity: new Fixed(identity), resetSecret: new Uint8Array(32), store: new Fixed({}), sealer: new Fixed({}) };
  const open = (given: object) => Basestation.open(environment, given as never);
  expect(
    await takenWrongly('options', open, [
      { ...parts, port: 0, host: '127.0.0.1', outbound: { post: Math.abs }, issuers: { get: Math.abs } },
    ]),
  ).toEqual([]);
  const withSettings = (given: object) =>
    open({ identity, resetSecret: new Uint8Array(32), store: {}, sealer: {}, port: 0, settings: given });
  expect(await takenWrongly('settings', withSettings, [settings])).toEqual([]);
});

test('functions', async () => {
  const record = new Fixed({ organizationId: 'or-1', projectId: 'p', serviceId: 'se-1' });
  await expectFunctionsChecked(entry, {
    startBasestation: [{ data: '/nowhere', port: 0, log: silentLog }],
    openStationData: ['/nowhere', new Fixed({})],
    openStore: ['/nowhere'],
    openSqliteStore: ['/nowhere/file'],
    openSealer: ['/nowhere'],
    hashSecret: ['secret'],
    newApiKeySecret: ['ak-1'],
    newId: ['pr'],
    newServerKey: [],
    credentialRecord: [record],
    serviceRecord: [record],
  });
});
