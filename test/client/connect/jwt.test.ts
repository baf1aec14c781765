/** A token of an issuer (`ServerJwtToken`): what a client reaches with it, and which errors it gets. */
import { expect, test, vi } from 'vitest';
import { answerOf } from '../../../client/connect/waiting.ts';
import type { ConnectionOptions, NoChannelsError } from '../../../client/node.ts';
import { stationReply } from '../../../protocol/control/index.ts';
import { StationCode } from '../../../protocol/errors/index.ts';
import { ids, SCT, SERVER_URL } from '../../support/fixture/identifiers.ts';
import { tokenOf } from '../../support/fixture/issuer.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { asked, NAMED } from '../stand-in.ts';

const GOOD = tokenOf([`${ids.productId}.${ids.deviceId}`]);
const keyed = { ...NAMED, ServerKey: 'sk-jwt' };

test('a token that names the device admits together with its server key, and one that names another is refused with a reason', {
  tags: ['slow'],
}, async () => {
  const fixture = await ProductFixture.withStation();
  await fixture.attached();
  const client = fixture.client();
  const { fingerprint: ServerFingerprint } = fixture.stationUnderTest;
  const showing = (ServerJwtToken: string) =>
    client.createConnection({ ...keyed, PrivateKey: client.createPrivateKey(), ServerUrl: SERVER_URL, ServerFingerprint, ServerJwtToken });
  expect(await fixture.code(showing(GOOD).connect())).toBe('OK');
  const refused = fixture.settle(showing(tokenOf(['pr-1.de-9'])).connect());
  const { remote } = ((await refused.catch((reason: unknown) => reason)) as NoChannelsError).cause as { remote: Error };
  expect(remote).toMatchObject({ code: 'TOKEN_REJECTED', message: expect.stringMatching(/4\.01.*does not name this device/) });
});

test.each<[string, StationCode, string, RegExp]>([
  ['an invalid or expired token', StationCode.INVALID_JWT, 'TOKEN_REJECTED', /4\.01.*invalid JWT/],
  ['no token where the key requires one', StationCode.SERVER_KEY_MISMATCH, 'FORBIDDEN', /4\.03.*does not allow this kind/],
  ['a token beside an unknown key', StationCode.UNKNOWN_SERVER_KEY, 'UNKNOWN_SERVER_KEY', /unknown server key/],
])('the refusal of %s is an error with the reason', (_, refusal, code, message) => {
  const { status, contentFormat, payload = new Uint8Array(0) } = stationReply(refusal);
  const answer = () => answerOf({ status, contentFormat: contentFormat!, payload });
  expect(answer).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
});

test('a token alone is refused before the base station is asked', async () => {
  const { remote, timeouts } = await asked({ ...NAMED, ServerJwtToken: GOOD });
  expect([remote?.code, remote?.message, timeouts]).toEqual([
    'INVALID_STATE',
    'the connection option ServerKey, which belongs to ServerJwtToken, is missing',
    undefined,
  ]);
});

test('a token beside a server connect token is not used, and its function is not called', async () => {
  const fetch = vi.fn(() => 'a.b.c');
  for (const ServerJwtToken of ['a.b.c', fetch]) {
    const { request } = await asked({ ...NAMED, ServerJwtToken, ServerConnectToken: SCT });
    expect([request?.sct, request?.jwt]).toEqual([SCT, undefined]);
  }
  expect(fetch).not.toHaveBeenCalled();
});

test('a function is called for a fresh token at each connect', async () => {
  const tokens = ['a.b.c', 'd.e.f'];
  const options: ConnectionOptions = { ...keyed, ServerJwtToken: async () => tokens.shift()! };
  expect([(await asked(options)).request?.jwt, (await asked(options)).request?.jwt]).toEqual(['a.b.c', 'd.e.f']);
});

test('a function that fails is the error of the channel', async () => {
  const failing: ConnectionOptions = { ...keyed, ServerJwtToken: () => Promise.reject(new Error('no session')) };
  expect(await asked(failing)).toMatchObject({
    channels: ['NONE', 'FAILED', 'NONE'],
    remote: { message: 'the function of ServerJwtToken failed: no session' },
  });
});

test('a function that never answers ends with the connect timeout', async () => {
  const { error, took } = await asked({ ...keyed, ServerJwtToken: () => new Promise<string>(() => {}), ConnectTimeout: 3_000 });
  expect([error.code, took]).toEqual(['TIMEOUT', 3_000]);
});
