/** A token of an issuer (`ServerJwtToken`): what a client reaches with it, and which errors it gets. */
import { beforeEach, expect, test, vi } from 'vitest';
import { describe as describeError } from '../../../cli/frame/errors.ts';
import type { Connection, ConnectionOptions, NoChannelsError } from '../../../client/node.ts';
import { ids, SCT, SERVER_URL } from '../../support/fixture/identifiers.ts';
import { tokenOf } from '../../support/fixture/issuer.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

const name = `${ids.productId}.${ids.deviceId}`;
const GOOD = tokenOf([name]);

let fixture: ProductFixture;
beforeEach(async () => {
  fixture = new ProductFixture();
  await fixture.station();
  await fixture.attached();
});

/** A connection with the given admission options and no others. */
function showing(options: ConnectionOptions): Connection {
  const client = fixture.client();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), ProductId: ids.productId, DeviceId: ids.deviceId });
  connection.updateOptions({ ServerUrl: SERVER_URL, ServerFingerprint: fixture.stationUnderTest.fingerprint, ...options });
  return connection;
}

/** Returns why the connect through the base station failed. */
async function refusal(options: ConnectionOptions): Promise<Error & { code: string }> {
  const error = await fixture.settle(
    showing(options)
      .connect()
      .catch((reason: unknown) => reason),
  );
  return ((error as NoChannelsError).cause as { remote: Error & { code: string } }).remote;
}

test('a token that names the device admits together with its server key', async () => {
  expect(await fixture.code(showing({ ServerKey: 'sk-jwt', ServerJwtToken: GOOD }).connect())).toBe('OK');
});

test.each<[string, ConnectionOptions, string, RegExp]>([
  ['a token that names another device', { ServerJwtToken: tokenOf(['pr-1.de-9']) }, 'TOKEN_REJECTED', /4\.01.*does not name this device/],
  ['a token with an invalid signature', { ServerJwtToken: tokenOf([name], { signature: 'bad' }) }, 'TOKEN_REJECTED', /4\.01.*invalid JWT/],
  ['an expired token', { ServerJwtToken: tokenOf([name], { expires: 1 }) }, 'TOKEN_REJECTED', /invalid JWT/],
  ['no token where the key requires one', {}, 'FORBIDDEN', /4\.03.*does not allow this kind/],
  ['a token beside a key that admits alone', { ServerKey: 'sk-a', ServerJwtToken: GOOD }, 'FORBIDDEN', /4\.03/],
  ['a token beside an unknown key', { ServerKey: 'sk-x', ServerJwtToken: GOOD }, 'UNKNOWN_SERVER_KEY', /unknown server key/],
])('%s is refused', async (_, options, code, message) => {
  const error = await refusal({ ServerKey: 'sk-jwt', ...options });
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
});

test('a token alone is refused before the base station is asked', { tags: ['slow'] }, async () => {
  expect(await refusal({ ServerJwtToken: GOOD })).toMatchObject({
    code: 'INVALID_STATE',
    message: 'the connection option ServerKey, which belongs to ServerJwtToken, is missing',
  });
});

test('the command line gives a remedy for a rejected token', async () => {
  const connecting = showing({ ServerKey: 'sk-jwt', ServerJwtToken: 'a.b.c' }).connect();
  const error = await fixture.settle(connecting.catch((reason: unknown) => reason));
  expect(describeError(error as Error)).toMatch(/invalid JWT \(TOKEN_REJECTED\): .*fresh token.*--jwt-file/);
});

test('a token beside a server connect token is not used, and its function is not called', async () => {
  const fetch = vi.fn(() => 'a.b.c');
  for (const ServerJwtToken of ['a.b.c', fetch])
    expect(await fixture.code(showing({ ServerJwtToken, ServerConnectToken: SCT }).connect())).toBe('OK');
  expect(fetch).not.toHaveBeenCalled();
});

test('a function is called for a fresh token at each connect', { tags: ['slow'] }, async () => {
  const fetch = vi.fn(async () => GOOD);
  const options = { ServerKey: 'sk-jwt', ServerJwtToken: fetch };
  for (let connects = 1; connects <= 2; connects++) {
    expect(await fixture.code(showing(options).connect())).toBe('OK');
    expect(fetch).toHaveBeenCalledTimes(connects);
  }
  expect(showing(options).getOptions()).not.toHaveProperty('ServerJwtToken');
});

test.each<[string, () => string | Promise<string>, string, RegExp]>([
  ['that rejects', () => Promise.reject(new Error('no session')), 'FAILED', /the function of ServerJwtToken failed/],
  [
    'that throws',
    () => {
      throw new Error('no session');
    },
    'FAILED',
    /failed: no session/,
  ],
  ['that gives nothing', () => undefined as never, 'INVALID_ARGUMENT', /returned no token/],
  ['that gives a line break', () => `${GOOD}\n`, 'INVALID_ARGUMENT', /returned no token: it must be a JWT/],
])('a function %s fails the connect with a message', async (_, ServerJwtToken, code, message) => {
  expect(await refusal({ ServerKey: 'sk-jwt', ServerJwtToken })).toMatchObject({ code, message: expect.stringMatching(message) });
});

test('a function that never answers ends with the connect timeout', async () => {
  const connection = showing({ ServerKey: 'sk-jwt', ServerJwtToken: () => new Promise<string>(() => {}), ConnectTimeout: 3_000 });
  expect(await fixture.code(connection.connect())).toBe('TIMEOUT');
});

test.each<[string, unknown]>([
  ['a blank', `${GOOD} `],
  ['a line break', `${GOOD}\n`],
  ['two parts', 'a.b'],
  ['8,193 characters', `${'a'.repeat(8189)}.b.c`],
  ['another type', 7],
])('a token with %s is INVALID_ARGUMENT where it is set', (_, ServerJwtToken) => {
  expect(() => showing({ ServerJwtToken } as ConnectionOptions)).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/ServerJwtToken must be a JWT: three parts/) }),
  );
});
