/** What the client SDK takes: every public function refuses a wrong type, and an option that does not exist. */
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as entry from '../../client/node.ts';
import { type Connection, Gateway, type IamConnection, IamUtil, PortForwarding, SvcClient } from '../../client/node.ts';
import { requestOf } from '../../client/requests.ts';
import type { Environment } from '../../platform/environment.ts';
import { isPlain } from '../../protocol/arguments.ts';
import type { Body } from '../../protocol/body.ts';
import { thrownCode } from '../support/code-of.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { expectChecked, expectFunctionsChecked, Fixed, NO_PAYLOADS, OrNull, takenWrongly } from '../support/wrong-arguments.ts';

const { signal } = new AbortController();
const callback = () => {};
const receiver = { onResultReady: () => {} };
const bytes = Uint8Array.of(1);
const fingerprint = 'ab'.repeat(32);

let environment: Environment;
let client: SvcClient;
let connection: Connection;
beforeAll(() => {
  environment = new ProductFixture().host('phone');
  client = SvcClient.create({ environment });
  connection = client.createConnection();
  connection.enableDirectCandidates();
});
afterAll(() => client.stop());

describe('every function refuses a wrong type:', () => {
  test('SvcClient', async () => {
    const options = { environment, maxConnections: 4, noCandidatesOn: ['eth0'], mapsPort: true };
    expect(await takenWrongly('create', (given) => SvcClient.create(given), [options])).toEqual([]);
    await expectChecked(client, {
      version: [],
      setLogLevel: ['info'],
      setLogCallback: [new OrNull(() => {})],
      createPrivateKey: [],
      createConnection: [{ ProductId: 'pr-1', Local: true, ConnectTimeout: 5 }],
      addMdnsResultListener: [receiver, new OrNull('thermostat')],
      removeMdnsResultListener: [new Fixed()],
      createMdnsScanner: [new OrNull('thermostat')],
      stop: [],
    });
  });

  test('Connection', async () => {
    await expectChecked(connection, {
      updateOptions: [{ ProductId: 'pr-1', Local: true, KeepAliveInterval: 5, ServerJwtToken: 'a.b.c' }],
      getOptions: [],
      connect: [{ signal }],
      close: [],
      getLocalChannelErrorCode: [],
      getRemoteChannelErrorCode: [],
      getDirectCandidatesChannelErrorCode: [],
      getType: [],
      paths: [],
      getDeviceFingerprint: [],
      getClientFingerprint: [],
      stats: [],
      enableDirectCandidates: [],
      addDirectCandidate: ['192.0.2.1', 5592],
      endOfDirectCandidates: [],
      request: ['GET', '/x', { body: new Fixed('x'), format: 0, query: new Fixed(['a=b']), timeout: 1, signal }],
      get: ['/x', { query: new Fixed({ a: 'b' }) }],
      put: ['/x', new Fixed(bytes), { format: 0 }],
      post: ['/x', new Fixed(bytes), { format: 0 }],
      delete: ['/x', {}],
      observe: ['/x', { method: 'GET', signal }],
      passwordAuthenticate: ['ann', 'secret'],
      openStream: [],
      createTcpTunnel: [],
      createUdpTunnel: [],
      findService: ['tcp', 'web'],
      on: [new Fixed(), callback],
      once: [new Fixed(), callback],
      off: [new Fixed(), new Fixed()],
      events: [{ signal }],
    });
  });

  test('tunnels and scanners', async () => {
    await expectChecked(connection.createTcpTunnel(), { open: ['web', 0], getLocalPort: [], close: [] });
    const udp = { open: ['web', 0, { idleTimeout: 1_000, maxFlows: 1 }], getLocalPort: [], stats: [], close: [] };
    await expectChecked(connection.createUdpTunnel(), udp);
    await expectChecked(client.createMdnsScanner(), {
      start: [],
      stop: [],
      isStarted: [],
      addMdnsResultReceiver: [receiver],
      removeMdnsResultReceiver: [new Fixed()],
    });
  });

  test('IamUtil', async () => {
    const asked: string[] = [];
    const silent = {
      request: async (method: string, path: string) => asked.push(`${method} ${path}`),
      passwordAuthenticate: async () => asked.push('login'),
      getClientFingerprint: () => fingerprint,
    } as unknown as IamConnection;
    expect(await takenWrongly('IamUtil', (given) => new IamUtil(given), [silent])).toEqual([]);
    const pairing = { fingerprintName: 'phone' };
    await expectChecked(new IamUtil(silent), {
      pairLocalOpen: ['ann', pairing],
      pairLocalInitial: [pairing],
      pairPasswordOpen: ['ann', 'secret', pairing],
      pairPasswordInvite: ['ann', 'secret', pairing],
      pair: [{ ...pairing, mode: 'LocalOpen', username: 'ann', password: 'secret', ask: Math.abs }],
      getAvailablePairingModes: [],
      getDeviceDetails: [],
      isCurrentUserPaired: [],
      getCurrentUser: [],
      getUser: ['ann'],
      listUsers: [],
      listRoles: [],
      createUser: ['ann', { password: 'secret', role: 'Guest' }],
      deleteUser: ['ann'],
      renameUser: ['ann', 'bob'],
      updateUserPassword: ['ann', new OrNull('secret')],
      updateUserRole: ['ann', 'Guest'],
      updateUserDisplayName: ['ann', new OrNull('Ann')],
      updateUserSct: ['ann', 'token'],
      updateUserOauthSubject: ['ann', new OrNull('subject')],
      updateUserFingerprint: ['ann', new OrNull(fingerprint)],
      addUserFingerprint: ['ann', fingerprint, 'phone'],
      removeUserFingerprint: ['ann', fingerprint],
      getNotificationCategories: [],
      updateUserNotificationCategories: ['ann', ['Info']],
      updateUserPush: ['ann', { token: 't', projectId: 'p' }],
      sendUserPushTest: ['ann'],
      getSettings: [],
      updateSetting: ['local-open-pairing', true],
      updateFriendlyName: ['Kitchen'],
    });
    expect(asked).toEqual([]);
  });

  test('functions', async () => {
    const pairing = { productId: 'pr-1', deviceId: 'de-1', server: 'a:1', addresses: ['a:1'], password: 'secret', username: 'ann' };
    const known = { username: 'ann', password: 'secret', invited: true };
    await expectFunctionsChecked(entry, {
      choosePairingMode: [['LocalOpen'], known],
      missingForPairing: ['LocalOpen', known],
      decodeDeviceDetails: [bytes],
      decodeUser: [bytes],
      decodePairing: ['p=pr-1,d=de-1'],
      encodePairingLink: [pairing, 'https://app.example/'],
      encodePairingString: [pairing],
      encodeUser: [{ username: 'ann', role: 'Guest', fingerprints: [], notificationCategories: ['Info'], push: { token: 't' } }],
      // Any other code has the meaning of UNKNOWN.
      errorGetMessage: [new Fixed('TIMEOUT')],
      nodeEnvironment: [{ mdnsInterfaces: ['eth0'] }],
    });
  });

  test('PortForwarding and Gateway', async () => {
    const forwarding = {
      environment,
      connection,
      connect: Math.abs,
      services: [],
      address: '127.0.0.1',
      renewsToken: false,
      onEvent: Math.abs,
    };
    expect(await takenWrongly('PortForwarding.open', (given) => PortForwarding.open(given), [forwarding])).toEqual([]);
    const service = async (given: unknown) => PortForwarding.open({ ...forwarding, services: [given] } as never);
    expect(await takenWrongly('service', service, [{ kind: 'tcp', id: 'web', localPort: 0 }])).toEqual([]);
    const gateway = {
      environment,
      connect: Math.abs,
      connection,
      host: '127.0.0.1',
      port: 0,
      requestTimeout: 1,
      renewsToken: false,
      onState: Math.abs,
    };
    expect(await takenWrongly('Gateway.open', (given) => Gateway.open(given), [gateway])).toEqual([]);
  });
});

const PAYLOADS: [string, Body, number[]][] = [
  ['text', 'h\u00e9\u{1f511}', [0x68, 0xc3, 0xa9, 0xf0, 0x9f, 0x94, 0x91]],
  ['an empty text', '', []],
  ['an ArrayBuffer', Uint8Array.of(1, 2, 3).buffer, [1, 2, 3]],
  ['an empty ArrayBuffer', new ArrayBuffer(0), []],
  ['a DataView of a part', new DataView(Uint8Array.of(1, 2, 3).buffer, 1, 2), [2, 3]],
  ['a view of wider elements', new Uint16Array([0x0201]), [1, 2]],
  ['a Buffer', Buffer.from('ab'), [0x61, 0x62]],
  ['a view of shared memory', new Uint16Array(new SharedArrayBuffer(2)), [0, 0]],
  ['an ArrayBuffer of another realm', runInNewContext('Uint8Array.of(7).buffer'), [7]],
];

describe('the body of a request', () => {
  const sent = (body: unknown): Uint8Array => requestOf('POST', '/x', { body: body as Body }).payload!;

  test.each(PAYLOADS)('%s is sent as its bytes', (_, payload, expected) => {
    expect([...sent(payload)]).toEqual(expected);
  });

  test('an object or an array is sent as CBOR; anything else is refused', () => {
    const isCbor = (value: unknown): boolean => Array.isArray(value) || isPlain(value);
    for (const value of NO_PAYLOADS.filter((each) => each !== undefined && !isCbor(each)))
      expect(thrownCode(() => sent(value))).toBe('INVALID_ARGUMENT');
    expect([sent({ a: 1 }), sent([1])]).toEqual([Uint8Array.of(0xa1, 0x61, 0x61, 1), Uint8Array.of(0x81, 1)]);
  });
});
