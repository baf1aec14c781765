/**
 * Bench process: a base station with a server key that admits alone and one that requires a token. It has the issuer's
 * keys, and also creates the tokens before the measurement. It serves its document over TLS.
 */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { Basestation, hashSecret, openStationData } from '../../server/index.ts';
import { readKeySet } from '../../server/jwt/keys.ts';
import { tokenHeader, verifyToken } from '../../server/jwt/token.ts';
import { listen } from '../../server/rest/listen.ts';
import { restApp } from '../../server/rest/server.ts';
import { selfSigned } from './certificate.ts';
import { serve } from './child.ts';

interface Start {
  readonly data: string;
  readonly productId: string;
  readonly deviceId: string;
  /** Full hex fingerprint of the device's key. */
  readonly deviceFingerprint: string;
}

const jwt = {
  issuer: 'https://login.example',
  audience: 'svc',
  audienceClaim: 'aud',
  jwksUri: 'https://192.0.2.1/keys',
  svcIdsClaim: 'svc_ids',
};
const unlimited = 1_000_000;
const settings = { connectsPerDevice: unlimited, connectsPerAddress: unlimited, tokenChecksPerAddress: unlimited };
const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
const body = new TextEncoder().encode(JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one' }] }));

serve({
  async start({ data, productId, deviceId, deviceFingerprint }: Start) {
    const environment = nodeEnvironment();
    const { identity, resetSecret, store, sealer } = await openStationData(data, environment.crypto);
    const created = new Date().toISOString();
    const { organizationId } = await store.defaultOrganization({ organizationId: 'or-bench', name: null, created });
    await store.addProduct({ productId, organizationId, name: null, created });
    await store.addDevice({ productId, deviceId, name: null, fingerprint: deviceFingerprint, created });
    const app = { organizationId, name: null, productIds: null, created };
    await store.addApp({ ...app, appId: 'ap-key', authType: 'NONE', jwt: null, keyHash: hashSecret('sk-key') });
    await store.addApp({ ...app, appId: 'ap-jwt', authType: 'JWT', jwt, keyHash: hashSecret('sk-jwt') });
    const issuers = { get: async () => ({ status: 200, headers: {}, body, cut: false }), allowPrivate: () => true };
    // Resolves without the network, since no key set may be fetched from a documentation address.
    const network = { ...environment.network, resolve: async () => ['127.0.0.1'] };
    const options = { identity, resetSecret, store, sealer, port: 0, settings, issuers };
    const station = await Basestation.open({ ...environment, network }, options);
    const tls = await selfSigned();
    const httpsPort = await listen(restApp({ store, station: () => station, log: environment.log, tls }), '127.0.0.1', 0);
    return { port: station.port, fingerprint: station.fingerprint, httpsPort, rootCerts: tls.cert };
  },

  /** Returns `count` different tokens for the device. */
  async tokens({ count, devices }: { count: number; devices: string }): Promise<string[]> {
    const token = (index: number) =>
      new SignJWT({ iss: jwt.issuer, aud: jwt.audience, svc_ids: devices, jti: `${index}` })
        .setProtectedHeader({ alg: 'ES256', kid: 'one' })
        .setExpirationTime('1h')
        .sign(privateKey);
    return Promise.all(Array.from({ length: count }, (_, index) => token(index)));
  },

  /** Returns the µs of processor time so far. */
  used: () => used(),

  /** Returns the mean µs of processor time for checking a token. */
  async verify(tokens: string[]): Promise<number> {
    const set = readKeySet(body);
    const before = used();
    for (const token of tokens) {
      const header = tokenHeader(token)!;
      await verifyToken(token, header, { keys: set.candidates(header), issuer: jwt, wallTime: Date.now() });
    }
    return (used() - before) / tokens.length;
  },
});

function used(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}
