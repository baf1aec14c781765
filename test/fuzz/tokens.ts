/**
 * What a client and an issuer of tokens send to a base station, through the library that verifies it: damaged and
 * forged tokens against damaged sets of keys.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { silentLog } from '../../platform/environment.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { LogTally } from '../../runtime/log-tally.ts';
import { type KeySet, readKeySet } from '../../server/jwt/keys.ts';
import { TokenVerifier } from '../../server/jwt/verifier.ts';
import type { Random } from '../../testing/random.ts';
import { jwtApp, NOW } from '../server/jwt/issuer.ts';
import { chance, hostile, pick } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 20;
const DEVICE = 'pr-1.de-1';
const utf8 = new TextEncoder();
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one' };
const rsa = { ...other.export({ format: 'jwk' }), kid: 'two', use: 'sig', alg: 'RS256', key_ops: ['verify'] };
const sets = [
  [jwk],
  [jwk, rsa],
  [{ ...jwk, kid: undefined }],
  [
    { kty: 'OKP', crv: 'Ed25519', x: 'AAAA', kid: 'one' },
    { kty: 'oct', k: 'AA' },
  ],
];
const keySamples = sets.map((keys) => utf8.encode(JSON.stringify({ keys })));
const claims = { iss: 'https://login.example', aud: 'svc', exp: NOW / 1000 + 3600, nbf: 0, svc_ids: DEVICE };
const headers = [
  { alg: 'ES256', kid: 'one' },
  { alg: 'RS256', kid: 'two', crit: ['b64'], b64: false },
  { alg: 'EdDSA', zip: 'DEF' },
  { alg: 'none' },
];
const headerSamples = headers.map((header) => utf8.encode(JSON.stringify(header)));
const claimSamples = [claims, { ...claims, svc_ids: [DEVICE], aud: ['svc', 1] }, [], { exp: 1e300 }].map((each) =>
  utf8.encode(JSON.stringify(each)),
);

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url');

/** A token with parts that may be damaged, often with the issuer's signature over them. */
function tokenOf(random: Random): { token: string; isIntact: boolean } {
  const isIntact = chance(random, 0.1);
  const head = isIntact ? headerSamples[0]! : hostile(random, headerSamples);
  const body = isIntact ? claimSamples[0]! : hostile(random, claimSamples);
  const input = `${base64(head)}.${base64(body)}`;
  const signature =
    isIntact || chance(random, 0.7) ? sign('sha256', Buffer.from(input), { key: privateKey, dsaEncoding: 'ieee-p1363' }) : random.bytes(64);
  const token = `${input}.${base64(signature)}`;
  if (isIntact || chance(random, 0.8)) return { token, isIntact };
  return { token: new TextDecoder().decode(hostile(random, [utf8.encode(token)])), isIntact };
}

function setOf(random: Random, isIntact: boolean): KeySet | null {
  try {
    return readKeySet(isIntact ? pick(random, keySamples.slice(0, 3)) : hostile(random, keySamples));
  } catch (error) {
    if (!(error instanceof RemoteError)) throw error;
    return null;
  }
}

const tokens: Target = {
  name: 'jwt',
  async iterate(random) {
    const clock = { now: () => 0, wallTime: () => NOW, schedule: () => () => {}, defer: () => {}, soon: () => {} };
    const tally = new LogTally(clock, silentLog);
    for (let i = 0; i < INPUTS; i++) {
      const { token, isIntact } = tokenOf(random);
      const set = setOf(random, isIntact);
      const verifier = new TokenVerifier({ clock, tally, keySets: { of: async () => set } as never, rate: 1, burst: 1 });
      const verdict = await verifier.check({ app: jwtApp(), token, device: DEVICE, address: '192.0.2.1' });
      if (isIntact && verdict !== 'admitted') throw new Error(`an intact token is ${JSON.stringify(verdict)}`);
      if (typeof verdict !== 'string') throw new Error(`the first token of an address has to wait ${verdict.wait} s`);
    }
  },
};

export const tokenTargets: readonly Target[] = [tokens];
