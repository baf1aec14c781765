/** A token of an issuer (`ServerJwtToken`): what a client is told as long as base stations do not check them. */
import { beforeEach, expect, test } from 'vitest';
import { describe as describeError } from '../../../cli/frame/errors.ts';
import type { Connection, ConnectionOptions, NoChannelsError } from '../../../client/node.ts';
import { ids, SCT, SERVER_URL } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

const ServerJwtToken = 'HEAD.CLAIMS.SIGNATURE';

let fixture: ProductFixture;
beforeEach(async () => {
  fixture = new ProductFixture();
  await fixture.station();
  await fixture.attached();
});

/** A connection that shows what is given and nothing else. */
function showing(options: ConnectionOptions): Connection {
  const client = fixture.client();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), ProductId: ids.productId, DeviceId: ids.deviceId });
  connection.updateOptions({ ServerUrl: SERVER_URL, ServerFingerprint: fixture.stationUnderTest.fingerprint, ...options });
  return connection;
}

test.each<[string, ConnectionOptions]>([
  ['alone', {}],
  ['beside a server key that asks for one', { ServerKey: 'sk-jwt' }],
])('%s it is TOKEN_REJECTED, and the error says why', async (_, options) => {
  const connecting = showing({ ServerJwtToken, ...options }).connect();
  const error = (await fixture.settle(connecting.catch((reason: unknown) => reason))) as NoChannelsError;
  expect(error).toMatchObject({ code: 'NO_CHANNELS', remoteChannelErrorCode: 'TOKEN_REJECTED' });
  const { remote } = error.cause as { remote: Error };
  expect(remote.message).toBe('the base station refused (4.01): tokens of an issuer (JWT) are not supported yet');
  expect(describeError(error)).toMatch(/tokens of an issuer \(JWT\) are not supported yet \(TOKEN_REJECTED\): .*--sct.*--server-key/);
});

test.each<[string, ConnectionOptions]>([
  ['a server connect token', { ServerConnectToken: SCT }],
  ['a server key that admits alone', { ServerKey: 'sk-a' }],
])('beside %s it is not looked at', async (_, options) => {
  expect(await fixture.code(showing({ ServerJwtToken, ...options }).connect())).toBe('OK');
});
