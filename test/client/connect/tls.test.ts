/** A connection without a pin of the base station: TLS authenticates the station. */
import { beforeEach, describe, expect, test } from 'vitest';
import { SvcClient as BrowserClient } from '../../../client/browser.ts';
import type { ConnectionOptions, SvcClient } from '../../../client/node.ts';
import { withLog } from '../../../platform/environment.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { ids, SCT, SERVER_URL } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { PEM_OF_ROOT, publishDocument } from '../../support/fixture/station-document.ts';

let fixture: ProductFixture;
let client: SvcClient;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
  await fixture.attached();
  client = fixture.client();
});

function unpinned(options: ConnectionOptions = {}, from: Pick<SvcClient, 'createConnection' | 'createPrivateKey'> = client) {
  const connection = from.createConnection();
  const to = { ProductId: ids.productId, DeviceId: ids.deviceId, ServerUrl: SERVER_URL, ServerConnectToken: SCT };
  connection.updateOptions({ PrivateKey: from.createPrivateKey(), ...to, ...options });
  return connection;
}

describe('without a pin', () => {
  test('TLS authenticates the base station, once for many connections, and the connection shows it', { tags: ['slow'] }, async () => {
    const asked = publishDocument(fixture);
    const connections = [unpinned(), unpinned(), unpinned()];
    expect(connections[0]!.stationVerified).toBeNull();
    await fixture.settle(Promise.all(connections.map((each) => each.connect())));
    expect(connections.map((each) => [each.getType(), each.stationVerified])).toEqual(Array(3).fill(['RELAY', 'tls']));
    expect(asked.length).toBe(1);
  });

  test('the roots of the options check its certificate, and each set of roots counts separately', { tags: ['slow'] }, async () => {
    const asked = publishDocument(fixture);
    const [one, two] = [unpinned({ RootCerts: PEM_OF_ROOT }), unpinned()];
    await fixture.settle(Promise.all([one.connect(), two.connect()]));
    expect(asked.map(({ rootCerts }) => rootCerts)).toEqual([PEM_OF_ROOT, undefined]);
  });

  test('an invalid certificate is the error of the remote channel, with its reason', { tags: ['slow'] }, async () => {
    publishDocument(fixture, new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'the certificate of station has expired'));
    const connection = unpinned();
    const error = await fixture.settle(connection.connect().catch((reason: unknown) => reason));
    expect(error).toMatchObject({ code: 'NO_CHANNELS', cause: { remote: { message: 'the certificate of station has expired' } } });
    expect(connection.getRemoteChannelErrorCode()).toBe('CERTIFICATE_VALIDATION_FAILED');
    expect(connection.stationVerified).toBeNull();
  });

  test('another key than that of the document is FINGERPRINT_MISMATCH of the base station, after a second request', {
    tags: ['slow'],
  }, async () => {
    const asked = publishDocument(fixture, { fingerprint: 'ab'.repeat(32) });
    const connection = unpinned();
    const error = await fixture.settle(connection.connect().catch((reason: unknown) => reason));
    expect(error).toMatchObject({ code: 'NO_CHANNELS', cause: { remote: { message: expect.stringContaining('announces by https') } } });
    expect(connection.getRemoteChannelErrorCode()).toBe('FINGERPRINT_MISMATCH');
    expect(asked.length).toBe(2);
  });
});

describe('with a pin', () => {
  test('the document is not fetched, and TLS does not replace the pin', { tags: ['slow'] }, async () => {
    const asked = publishDocument(fixture);
    const connection = await fixture.connected();
    expect(connection.stationVerified).toBe('pinned');
    const other = unpinned({ ServerFingerprint: 'ab'.repeat(32) });
    await expect(fixture.settle(other.connect())).rejects.toMatchObject({ code: 'NO_CHANNELS' });
    expect(other.getRemoteChannelErrorCode()).toBe('FINGERPRINT_MISMATCH');
    expect(asked).toEqual([]);
  });

  test('RootCerts have no effect, and are refused', async () => {
    const both = unpinned({ ServerFingerprint: fixture.stationUnderTest.fingerprint, RootCerts: PEM_OF_ROOT });
    await expect(both.connect()).rejects.toMatchObject({ code: 'INVALID_STATE', message: expect.stringContaining('RootCerts') });
  });
});

test('RootCerts that are no PEM are INVALID_ARGUMENT with a message', { tags: ['slow'] }, () => {
  for (const RootCerts of ['x', 7 as never]) {
    const update = (): void => client.createConnection().updateOptions({ RootCerts });
    expect(update).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('root certificates') }));
  }
});

test('a host without https, such as a browser, needs the pin', async () => {
  const host = fixture.host('browser');
  const { getHttps: _, ...environment } = withLog(host, host.log);
  const connection = unpinned({}, BrowserClient.create({ environment }));
  const error = await fixture.settle(connection.connect().catch((reason: unknown) => reason));
  expect(error).toMatchObject({ code: 'NO_CHANNELS', cause: { remote: { code: 'INVALID_STATE' } } });
});
