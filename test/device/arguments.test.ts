/** What the device SDK takes: every public function refuses a wrong type, and an option that does not exist. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DeviceConnection } from '../../device/connections.ts';
import { IamDraft } from '../../device/iam/draft.ts';
import * as entry from '../../device/index.ts';
import {
  AuditLog,
  createIamSecrets,
  Device,
  type DeviceCoapResponse,
  defaultConfiguration,
  defaultIamLimits,
  demoState,
  Iam,
  joinBaseStation,
  logSeverityAsString,
  openIam,
  Rules,
} from '../../device/index.ts';
import { PasswordAuthenticationRequest } from '../../device/password/requests.ts';
import { silentLog } from '../../platform/environment.ts';
import { IncomingStream } from '../../runtime/session/incoming-stream.ts';
import type { StreamOwner } from '../../runtime/session/owner.ts';
import { Stream } from '../../runtime/session/stream.ts';
import { thrownCode } from '../support/code-of.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { expectChecked, expectFunctionsChecked, Fixed, NO_PAYLOADS, OrNull, takenWrongly } from '../support/wrong-arguments.ts';

const environment = new ProductFixture().host('box');
const fingerprint = 'ab'.repeat(32);
const connection: DeviceConnection = Object.create(DeviceConnection.prototype);
const service = { id: 'web', type: 'http', host: '127.0.0.1', port: 80, metadata: { a: 'b' } };
const source = { lookup: () => null, kdfOf: () => 0, isPaired: () => false };

let directory: string;
let device: Device;
let iam: Iam;
let log: AuditLog;
const secrets = createIamSecrets(new Device({ environment }).createPrivateKey());
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'arguments-'));
  device = new Device({ environment });
  iam = new Iam({ configuration: defaultConfiguration(), state: (await demoState(secrets)).state, secrets });
  const identity = { productId: 'p', deviceId: 'd', fingerprint };
  log = await AuditLog.open(directory, { identity, clock: environment.clock });
});
afterAll(async () => {
  await log.close();
  await rm(directory, { recursive: true });
});

describe('every function refuses a wrong type:', () => {
  test('the options of a device', async () => {
    const options = {
      environment,
      productId: 'p',
      deviceId: 'd',
      privateKey: device.createPrivateKey(),
      serverUrl: 'station.example',
      serverPort: 4433,
      serverFingerprint: fingerprint,
      rootCerts: 'none',
      serverWebSocketUrl: 'wss://station.example/',
      serverWebSocketVerify: true,
      appName: 'app',
      appVersion: '1',
      localPort: 0,
      p2pPort: 0,
      basestationAttach: true,
      rendezvous: { mode: 'paired', hardNat: true, candidates: ['203.0.113.7:5593'], noCandidatesOn: ['eth0'], portMapping: 'off' },
      keepAliveProfile: 'eco',
    };
    expect(await takenWrongly('Device', (given) => new Device(given), [options])).toEqual([]);
  });

  test('Device', async () => {
    await expectChecked(device, {
      addCoapResource: ['GET', '/x', () => undefined, { observable: true, type: 'a.b', title: 'X', action: 'X:Get', hidden: false }],
      addStreamListener: [7, () => {}],
      addTcpTunnelService: [service],
      setTcpTunnelServiceMetadata: ['web', { a: 'b' }],
      removeTcpTunnelService: ['web'],
      addUdpTunnelService: [{ ...service, idleTimeout: 1_000 }],
      setUdpTunnelServiceMetadata: ['web', { a: 'b' }],
      removeUdpTunnelService: ['web'],
      udpTunnelServiceStats: ['web'],
      setIam: [iam],
      authorizeConnection: [connection, new OrNull('ann')],
      setAuditLog: [log],
      onDenied: [() => {}],
      onAuthorizationRequest: [() => true],
      authorize: [connection, 'X:Get', { a: 'b' }],
      grant: [connection, 'X:Get', { a: 'b' }, () => {}],
      reconsiderGrants: [],
      createPushNotification: [],
      createServiceInvocation: [],
      onPasswordAuthenticationRequest: [() => {}],
      setPasswordSource: [source],
      createServerConnectToken: [],
      addServerConnectToken: ['token'],
      removeServerConnectToken: ['token'],
      areServerConnectTokensSynchronized: [],
      onDatagramLoss: [() => {}],
      onDeviceEvent: [() => {}],
      onConnectionEvent: [() => {}],
      connection: [new Fixed()],
      setBasestationAttach: [true],
      start: [],
      close: [],
      setProductId: ['p'],
      setDeviceId: ['d'],
      setPrivateKey: [device.createPrivateKey()],
      createPrivateKey: [],
      setAppName: ['app'],
      setAppVersion: ['1'],
      setServerUrl: ['station.example'],
      setServerPort: [4433],
      setServerFingerprint: [fingerprint],
      setRootCerts: ['none'],
      setServerWebSocketUrl: [new OrNull('wss://station.example/'), false],
      setRendezvous: [{ mode: 'paired', hardNat: true, candidates: ['203.0.113.7:5593'] }],
      setKeepAliveProfile: ['eco'],
      setLocalPort: [0],
      setP2pPort: [0],
      enableMdns: [],
      mdnsAddSubtype: ['thermostat'],
      mdnsAddTxtItem: ['key', 'value'],
      limitConnections: [64],
      limitStreams: [64],
      limitStreamSegments: [128],
      limitCoapServerRequests: [64],
      limitCoapObservations: [64],
      limitTcpTunnelConnections: ['http', 64],
      limitTunnelConnections: [64],
      limitTunnelConnectionsPerClient: [64],
      limitUdpTunnelFlows: ['dns', 64],
      limitUdpTunnelFlowsPerConnection: [64],
      setLogLevel: ['info'],
      setLogCallback: [new OrNull(() => {})],
      setLogStdOutCallback: [],
    });
    expect(thrownCode(() => device.limitStreamSegments(127))).toBe('INVALID_ARGUMENT');
    expect(await takenWrongly('logSeverityAsString', logSeverityAsString, [2])).toEqual([]);
  });

  test('functions', async () => {
    const any = new Fixed({});
    await expectFunctionsChecked(entry, {
      auditIam: [iam, log],
      createIamSecrets: [device.createPrivateKey(), any],
      defaultConfiguration: [],
      demoState: [secrets],
      productionState: [secrets],
      errorGetMessage: [new Fixed('TIMEOUT')],
      joinBaseStation: [{ joinString: 'svc://join#~x', privateKey: 'pem' }],
      logSeverityAsString: [2],
      nodeEnvironment: [{ mdnsInterfaces: ['eth0'] }],
      openIam: [directory, { secrets: new Fixed(secrets), firstState: Math.abs }],
      readAuditKey: [directory],
      // A directory, or files.
      readAuditEntries: [new Fixed(directory)],
      verifyAuditLog: [new Fixed(directory), { publicKey: fingerprint, expect: { seq: 0, hash: fingerprint } }],
      // JSON of any form, which is PARSE where it is wrong; and values of the SDK.
      readConfiguration: [any],
      readState: [any, any],
      configurationDocument: [any],
      stateDocument: [any],
    });
    for (const target of [null, 5, {}, [5]])
      for (const read of [entry.readAuditEntries, entry.verifyAuditLog])
        await expect(read(target as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('what a device makes', async () => {
    const resource = device.addCoapResource('GET', '/made', () => undefined);
    await expectChecked(resource, { notify: [{ a: 'b' }], remove: [] });
    await expectChecked(new PasswordAuthenticationRequest('ann', connection, () => {}), { setPassword: [new OrNull('secret')] });
    await expectChecked(device.createPushNotification(), {
      setProjectId: ['p'],
      setPayload: ['{}'],
      send: [],
      stop: [],
      getResponseStatusCode: [],
      getResponseBody: [],
    });
    await expectChecked(device.createServiceInvocation(), {
      setServiceId: ['s'],
      setMessage: [Uint8Array.of(1)],
      execute: [],
      stop: [],
      getResponseStatusCode: [],
      getResponseMessage: [],
      getResponseMessageFormat: [],
    });
    const stream = new Stream({} as StreamOwner<Stream>, 7, 4);
    expect(await takenWrongly('Stream.read', (max) => stream.read(max), [1])).toEqual([]);
    expect(await takenWrongly('Stream.readAll', (length) => stream.readAll(length), [1])).toEqual([]);
    expect(await takenWrongly('Stream.setWeight', (weight) => stream.setWeight(weight), [1])).toEqual([]);
    expect(await takenWrongly('Stream.setWeight', (weight) => stream.setWeight(weight), [1])).toEqual([]);
    const incoming = new IncomingStream(7, { accept: () => stream, refuse: () => {} });
    expect(await takenWrongly('IncomingStream.refuse', (code) => incoming.refuse(code), [1])).toEqual([]);
  });

  test('a join', async () => {
    const options = {
      environment,
      joinString: 'svc://join#~x',
      privateKey: 'pem',
      deviceId: 'd',
      serverUrl: 's',
      rootCerts: 'r',
      serverWebSocketUrl: 'w',
    };
    const { signal } = new AbortController();
    expect(await takenWrongly('joinBaseStation', (given) => joinBaseStation(given), [{ ...options, signal }])).toEqual([]);
  });

  test('access control', async () => {
    const shared = { secrets: new Fixed(secrets), limits: { maxUsers: 5 }, notificationCategories: ['Info'], log: silentLog };
    const state = new Fixed((await demoState(secrets)).state);
    const files = { configuration: new Fixed(defaultConfiguration()), state, save: Math.abs, saveConfiguration: Math.abs };
    expect(await takenWrongly('Iam', (given) => new Iam(given), [{ ...shared, ...files }])).toEqual([]);
    const store = { ...shared, firstState: Math.abs, firstConfiguration: Math.abs };
    expect(await takenWrongly('openIam', openIam, [directory, store])).toEqual([]);
    const calls = (name: keyof Iam, right: unknown[]) =>
      takenWrongly(name, (...given) => (iam[name] as (...all: unknown[]) => unknown)(...given), right);
    expect([
      ...(await calls('update', [() => {}])),
      ...(await calls('setUserPassword', [new Fixed('ann'), 'secret'])),
      ...(await calls('setLimits', [{ maxUsers: 5 }])),
      ...(await calls('setNotificationCategories', [['Info']])),
      ...(await calls('onChange', [() => {}])),
      ...(await calls('record', [async () => {}])),
    ]).toEqual([]);
    const draft = () =>
      new IamDraft(iam.state, {
        rules: new Rules(defaultIamLimits),
        roles: new Set(),
        notificationCategories: new Set(),
        makeToken: () => 't',
        today: undefined,
      });
    const drafts = (name: keyof IamDraft, right: unknown[]) =>
      takenWrongly(name, (...given) => (draft() as unknown as Record<string, (...all: unknown[]) => unknown>)[name]!(...given), right);
    expect([
      ...(await drafts('createUser', ['ann'])),
      ...(await drafts('setUserUsername', [new Fixed('ann'), 'bob'])),
      ...(await drafts('setFriendlyName', ['Kitchen'])),
      ...(await drafts('setOpenPairingSct', ['token'])),
    ]).toEqual([]);
  });

  test('the audit log', async () => {
    const options = {
      identity: { productId: 'p', deviceId: 'd', fingerprint },
      clock: environment.clock,
      segmentBytes: 65_536,
      maxBytes: 1 << 20,
    };
    expect(await takenWrongly('AuditLog.open', (where, given) => AuditLog.open(where, given), [directory, options])).toEqual([]);
    expect(await takenWrongly('append', (event, details) => log.append(event, details), ['opened', new Fixed({})])).toEqual([]);
  });
});

test('an answer of a wrong type is a failed handler, answered 5.00; text and bytes of any kind arrive', async () => {
  const fixture = await ProductFixture.withStation();
  const { device: serving } = await fixture.attached();
  const wrong = [null, 205, { payload: 'x' }, { status: '205' }, { status: 205, maxage: 1 }, ...NO_PAYLOADS.map(payloadAnswer)];
  const right = ['h\u00e9', Uint8Array.of(0x68, 0xc3, 0xa9).buffer, new DataView(Uint8Array.of(0, 0x68, 0xc3, 0xa9).buffer, 1)].flatMap(
    payloadAnswer,
  );
  const answers: unknown[] = [...wrong, ...right];
  serving.addCoapResource('GET', '/next', () => answers.shift() as DeviceCoapResponse);
  const connection = await fixture.connected();
  for (const _ of wrong) expect(await fixture.settle(connection.get('/next'))).toMatchObject({ status: 500 });
  for (const _ of right)
    expect(await fixture.settle(connection.get('/next'))).toMatchObject({ status: 205, bytes: Uint8Array.of(0x68, 0xc3, 0xa9) });
});

function payloadAnswer(payload: unknown): unknown {
  return { status: 205, payload };
}
