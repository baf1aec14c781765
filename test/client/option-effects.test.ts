/**
 * Each connection option of the specification reaches the code that acts on it. A new option does not compile without a
 * row.
 *
 * A row shows the lowest layer with the effect: mostly what a connect asks of its host and of its base station
 * (`stand-in.ts`). Through the whole stack: times in timing-options.test.ts, ids, proofs and pins in
 * connect/relay.test.ts.
 */
import { beforeEach, expect, test } from 'vitest';
import type { Connection, ConnectionOptions } from '../../client/node.ts';
import { effectiveOptions, keepAliveWish } from '../../client/options.ts';
import type { NatOptions, SimulatedHost } from '../../testing/index.ts';
import { ids } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { PEM_OF_ROOT } from '../support/fixture/station-document.ts';
import { ADMITTED, type Asked, asked, NAMED } from './stand-in.ts';

type Option = keyof ConnectionOptions;
/** Its effect, and a check that another value leads to another result. */
interface Effect {
  readonly acts: string;
  readonly shown: () => Promise<void>;
}

const OTHER_KEY = 'ab'.repeat(32);

/**
 * With seed 1 none of the 1,024 sprayed ports is open, as happens once in fifty times. Choose another seed when the
 * code draws one more random number.
 */
const SEED = 2;

let fixture: ProductFixture;
beforeEach(() => {
  fixture = new ProductFixture({ seed: SEED });
});

const { ServerFingerprint: _, ...unpinned } = ADMITTED;
const connect = (options: ConnectionOptions): Promise<Asked> => asked({ ...ADMITTED, ...options });

/** A connection that has no pin of a device, not yet connected. */
function connectionTo(options: ConnectionOptions, client = fixture.client()): Connection {
  return client.createConnection({ PrivateKey: client.createPrivateKey(), ...ADMITTED, ...options });
}

/** Returns the type of the connection, or the code of the error. */
function outcome(connection: Connection): Promise<string> {
  return fixture.settle(
    connection.connect().then(
      () => connection.getType(),
      ({ code }: { code: string }) => code,
    ),
  );
}

/** The multicast DNS questions in a network during a connect over the local network, each once. */
async function questions(network: string, options: ConnectionOptions): Promise<string[]> {
  const heard = new Set<string>();
  const neighbour = fixture.host('neighbour', { addresses: [`${network}.1/24`] });
  neighbour.mdns.open(neighbour.mdns.links()[0]!, {
    received: (message) => {
      for (const { name, type } of message.questions) heard.add(`${name} ${type}`);
    },
    failed: () => {},
  });
  const client = fixture.client(fixture.host('phone', { addresses: [`${network}.2/24`] }));
  await outcome(connectionTo({ Local: true, Remote: false, ...options }, client));
  return [...heard];
}

const effects: Record<Option, Effect> = {
  PrivateKey: {
    acts: 'is the identity of the client',
    shown: async () => {
      const PrivateKey = fixture.client().createPrivateKey();
      const [one, same, other] = [{ PrivateKey }, { PrivateKey }, {}].map((options) => connectionTo(options).getClientFingerprint());
      expect([same === one, other === one]).toEqual([true, false]);
    },
  },
  ProductId: {
    acts: 'names the product to the base station, and the device must have it',
    shown: async () => {
      const { request, target } = await connect({ ProductId: 'pr-x' });
      expect([request?.productId, target?.expect]).toEqual(['pr-x', { ProductId: 'pr-x', DeviceId: ids.deviceId }]);
    },
  },
  DeviceId: {
    acts: 'names the device to the base station, and the device must have it',
    shown: async () => {
      const { request, target } = await connect({ DeviceId: 'de-x' });
      expect([request?.deviceId, target?.expect]).toEqual(['de-x', { ProductId: ids.productId, DeviceId: 'de-x' }]);
    },
  },
  ServerUrl: {
    acts: 'is the base station that is reached',
    shown: async () => expect((await connect({ ServerUrl: 'https://x:7' })).station).toMatchObject({ host: 'x', port: 7 }),
  },
  ServerKey: {
    acts: 'is shown to the base station; without a proof it is not asked',
    shown: async () => {
      expect((await asked({ ...NAMED, ServerKey: 'sk-a' })).request).toMatchObject({ serverKey: 'sk-a' });
      const { remote, request } = await asked(NAMED);
      expect([remote?.code, request]).toEqual(['INVALID_STATE', undefined]);
    },
  },
  ServerJwtToken: {
    acts: 'is shown to the base station beside a server key; see connect/jwt.test.ts',
    shown: async () => {
      const { request } = await asked({ ...NAMED, ServerKey: 'sk-a', ServerJwtToken: 'a.b.c' });
      expect(request).toMatchObject({ serverKey: 'sk-a', jwt: 'a.b.c' });
    },
  },
  ServerConnectToken: {
    acts: 'is shown to the base station',
    shown: async () => expect((await asked({ ...NAMED, ServerConnectToken: 'token' })).request).toMatchObject({ sct: 'token' }),
  },
  AppName: {
    acts: 'is sent to the base station; see station/client-log.test.ts',
    shown: async () => {
      expect((await connect({ AppName: 'Phone' })).request).toMatchObject({ appName: 'Phone' });
      expect((await connect({})).request).not.toHaveProperty('appName');
    },
  },
  AppVersion: {
    acts: 'is sent to the base station; see station/client-log.test.ts',
    shown: async () => {
      expect((await connect({ AppVersion: '3.2' })).request).toMatchObject({ appVersion: '3.2' });
      expect((await connect({})).request).not.toHaveProperty('appVersion');
    },
  },
  KeepAliveProfile: { acts: 'is the profile of the keep-alive', shown: () => keepsAlive({ KeepAliveProfile: 'live' }, 'live', {}) },
  KeepAliveInterval: {
    acts: 'overrides that of the profile',
    shown: () => keepsAlive({ KeepAliveInterval: 5_000 }, 'balanced', { interval: 5_000 }),
  },
  KeepAliveRetryInterval: {
    acts: 'overrides that of the profile',
    shown: () => keepsAlive({ KeepAliveRetryInterval: 100 }, 'balanced', { retryInterval: 100 }),
  },
  KeepAliveMaxRetries: {
    acts: 'overrides that of the profile',
    shown: () => keepsAlive({ KeepAliveMaxRetries: 2 }, 'balanced', { maxRetries: 2 }),
  },
  DtlsHelloTimeout: {
    acts: 'limits the handshakes with base station and device, and the wait for the answer of the base station',
    shown: async () => {
      const { timeouts, target } = await connect({ DtlsHelloTimeout: 1_500 });
      expect([timeouts, target?.timeout]).toEqual([[1_500, 1_500], 1_500]);
    },
  },
  ConnectTimeout: {
    acts: 'ends the whole connect',
    shown: async () => {
      const options = { ...ADMITTED, ConnectTimeout: 2_500 };
      expect(await asked(options, () => new Promise(() => {}))).toMatchObject({ error: { code: 'TIMEOUT' }, took: 2_500 });
    },
  },
  Local: {
    acts: 'switches the way over the local network, and is on by default',
    shown: async () => {
      const { Local: _, ...byDefault } = ADMITTED;
      expect((await connect({ Remote: false })).channels).toEqual(['NONE', 'NONE', 'NONE']);
      expect((await connect({ Remote: false, Local: true })).channels).toEqual(['NOT_FOUND', 'NONE', 'NONE']);
      expect((await asked({ ...byDefault, Remote: false })).channels).toEqual(['NOT_FOUND', 'NONE', 'NONE']);
    },
  },
  Remote: {
    acts: 'switches the way through the base station, and is on by default',
    shown: async () => {
      expect(await connect({ Remote: false })).toMatchObject({ channels: ['NONE', 'NONE', 'NONE'], error: { code: 'NO_CHANNELS' } });
      expect((await connect({ Remote: false })).station).toBeUndefined();
      expect((await connect({})).channels).toEqual(['NONE', 'FORBIDDEN', 'NONE']);
    },
  },
  Rendezvous: {
    acts: 'migrates a relayed connection to a direct path, and is on by default',
    shown: async () => {
      await fixture.station();
      await fixture.attached();
      expect(fixture.client().createConnection().getOptions()).toMatchObject({ Rendezvous: true });
      for (const [Rendezvous, expected] of [
        [false, 'RELAY'],
        [true, 'DIRECT'],
      ] as const) {
        const connection = fixture.connection({ Local: false, Rendezvous });
        expect(await outcome(connection)).toBe('RELAY');
        await fixture.sim.run(2_000);
        expect(connection.getType()).toBe(expected);
      }
    },
  },
  HardNat: {
    acts: 'sprays ports of a NAT with random ports, and is on by default',
    shown: async () => {
      await fixture.station();
      const [home, office] = ['random', 'port'].map((kind, index) => behind(fixture, kind, index + 1));
      const { device } = await fixture.attached({ environment: home! });
      for (const [HardNat, expected] of [
        [false, 'RELAY'],
        [true, 'DIRECT'],
      ] as const) {
        const options = { Local: false, Rendezvous: true, HardNat, DeviceFingerprint: device.deviceFingerprint };
        const connection = fixture.connection(options, fixture.client(office));
        expect(await outcome(connection)).toBe('RELAY');
        await fixture.sim.run(15_000);
        expect(connection.getType()).toBe(expected);
        await fixture.settle(connection.close());
      }
    },
  },
  ScanLocalConnect: {
    acts: 'queries all devices instead of one',
    shown: async () => {
      expect(await questions('198.51.100', {})).toContain(`${ids.productId}-${ids.deviceId}._svc._udp.local SRV`);
      expect(await questions('203.0.113', { ScanLocalConnect: true })).toEqual(['_svc._udp.local PTR']);
    },
  },
  IgnoreDeviceNotAttached: {
    acts: 'asks the base station to wait for the device; see connect/waiting.test.ts',
    shown: async () => {
      expect((await connect({ IgnoreDeviceNotAttached: true })).request?.wait).toBe(true);
      expect((await connect({})).request?.wait).toBeUndefined();
    },
  },
  MdnsTimeout: {
    acts: 'ends the search on the local network',
    shown: async () => {
      for (const [options, expected] of [
        [{}, 2_000],
        [{ MdnsTimeout: 300 }, 300],
        [{ MdnsTimeout: 30_000 }, 30_000],
      ] as const) {
        const { channels, took } = await connect({ Local: true, Remote: false, ...options });
        expect([channels, took]).toEqual([['NOT_FOUND', 'NONE', 'NONE'], expected]);
      }
    },
  },
  DeviceFingerprint: {
    acts: 'pins the device',
    shown: async () => {
      expect((await connect({ DeviceFingerprint: OTHER_KEY })).target).toMatchObject({ pin: OTHER_KEY });
      expect((await connect({})).target).not.toHaveProperty('pin');
    },
  },
  ServerFingerprint: {
    acts: 'pins the base station',
    shown: async () => {
      expect((await connect({ ServerFingerprint: OTHER_KEY })).station).toMatchObject({ fingerprint: OTHER_KEY });
      expect((await asked(unpinned)).station).toMatchObject({ fingerprint: null });
    },
  },
  RootCerts: {
    acts: 'authenticates a base station without a pin, and is refused beside one; see connect/tls.test.ts',
    shown: async () => {
      expect((await asked({ ...unpinned, RootCerts: PEM_OF_ROOT })).station).toMatchObject({ rootCerts: PEM_OF_ROOT });
      expect((await asked(unpinned)).station).not.toHaveProperty('rootCerts');
      expect((await connect({ RootCerts: PEM_OF_ROOT })).error.code).toBe('INVALID_STATE');
    },
  },
  ServerWebSocketUrl: {
    acts: 'is the WebSocket that is opened when UDP is silent',
    shown: async () => {
      const elsewhere = fixture.host('elsewhere', { machine: 'elsewhere' });
      expect(await webSocketsAsked(elsewhere, {})).toEqual([]);
      expect(await webSocketsAsked(elsewhere, { ServerWebSocketUrl: 'wss://elsewhere:8443/some/path' })).toEqual(['/some/path']);
    },
  },
  ServerWebSocketVerify: {
    acts: 'requires a valid certificate',
    shown: async () => {
      const elsewhere = fixture.host('elsewhere', { machine: 'elsewhere' });
      const url = { ServerWebSocketUrl: 'wss://elsewhere:8443/' };
      expect(await webSocketsAsked(elsewhere, { ...url, ServerWebSocketVerify: true })).toEqual([]);
      expect(await webSocketsAsked(elsewhere, url)).toEqual(['/']);
      expect((await connect({ ServerWebSocketUrl: 'WS://elsewhere:8443/', ServerWebSocketVerify: true })).error.code).toBe('INVALID_STATE');
    },
  },
};

/** Paths of the WebSockets that a client opens at that host, whose certificate is invalid, when no UDP passes. */
async function webSocketsAsked(elsewhere: SimulatedHost, options: ConnectionOptions): Promise<string[]> {
  const asked: string[] = [];
  const accept = (_: unknown, { path }: { path: string }): number => {
    asked.push(path);
    return 404;
  };
  const listener = elsewhere.listenWebSocket({ port: 8443, secure: true, validCertificate: false, protocol: 'svc.1', accept });
  const phone = fixture.host('phone');
  fixture.sim.block(phone, 'udp');
  await outcome(connectionTo({ DtlsHelloTimeout: 3_000, ...options }, fixture.client(phone)));
  listener.close();
  return asked;
}

/** Expects that keep-alive with the options has the profile, with these numbers in place of its own. */
async function keepsAlive(options: ConnectionOptions, profile: string, explicit: object): Promise<void> {
  expect(keepAliveWish(effectiveOptions(options))).toEqual({ profile, explicit });
}

/** A host behind a home NAT. */
function behind({ sim }: ProductFixture, kind: string, number: number): SimulatedHost {
  const rules: NatOptions =
    kind === 'random'
      ? { outside: [`198.51.100.${number}`], mapping: 'address-port', ports: 'random' }
      : { outside: [`198.51.100.${number}`] };
  return sim.host(kind, { addresses: ['192.168.1.5/24'], behind: sim.nat(`nat of ${kind}`, rules) });
}

const rows = Object.entries(effects).map(([option, { acts, shown }]) => [option, acts, shown] as const);

test.each(rows)('%s %s', async (_option, _acts, shown) => {
  await shown();
});

test('a later call overrides an earlier one', () => {
  const connection = connectionTo({ IgnoreDeviceNotAttached: true });
  connection.updateOptions({ IgnoreDeviceNotAttached: false });
  expect(connection.getOptions()).toMatchObject({ IgnoreDeviceNotAttached: false });
});
