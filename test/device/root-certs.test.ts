/** A device without a pin: TLS authenticates its base station. */
import { describe, expect, test } from 'vitest';
import { Device } from '../../device/index.ts';
import { withLog } from '../../platform/environment.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { ids, SERVER_URL } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { PEM_OF_ROOT, publishDocument } from '../support/fixture/station-document.ts';

const FAULT = new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'the certificate of station has expired');

/** A device with the URL of its base station, and no fingerprint. */
async function unpinned(fixture: ProductFixture, rootCerts?: string) {
  const events: string[] = [];
  const reasons: unknown[] = [];
  const device = new Device({ environment: fixture.host('device'), ...ids, serverUrl: SERVER_URL });
  device.setPrivateKey(device.createPrivateKey());
  if (rootCerts !== undefined) device.setRootCerts(rootCerts);
  device.onDeviceEvent((event, reason) => {
    events.push(event);
    if (reason !== null) reasons.push(reason.message);
  });
  await fixture.stationUnderTest.register(ids, device.deviceFingerprint);
  await fixture.settle(device.start());
  return { device, events, reasons };
}

describe('a device without a pin', () => {
  test('attaches where TLS authenticates the base station, and asks once', async () => {
    const lines: unknown[] = [];
    const fixture = new ProductFixture({ log: (_, __, message, fields) => message === 'attached' && lines.push(fields) });
    await fixture.station();
    const asked = publishDocument(fixture);
    const { device, events } = await unpinned(fixture);
    await fixture.sim.run(() => events.includes('ATTACHED'));
    expect(asked.length).toBe(1);
    expect(asked[0]).not.toHaveProperty('rootCerts');
    expect(lines).toContainEqual({ station: 'station', proved: 'by TLS' });
    await fixture.settle(device.close());
  });

  test('has the certificate checked by the roots it was given', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const asked = publishDocument(fixture);
    const { device, events } = await unpinned(fixture, PEM_OF_ROOT);
    await fixture.sim.run(() => events.includes('ATTACHED'));
    expect(asked.map(({ rootCerts }) => rootCerts)).toEqual([PEM_OF_ROOT]);
    await fixture.settle(device.close());
  });

  test('reports CERTIFICATE_VALIDATION_FAILED with the reason, and retries', { tags: ['slow'] }, async () => {
    const fixture = new ProductFixture();
    const station = await fixture.station();
    publishDocument(fixture, FAULT, { fingerprint: station.fingerprint });
    const { device, events, reasons } = await unpinned(fixture);
    await fixture.sim.run(5000);
    expect([events, reasons]).toEqual([['CERTIFICATE_VALIDATION_FAILED'], ['the certificate of station has expired']]);
    expect(station.basestation.attached).toBe(0);
    await fixture.sim.run(() => events.includes('ATTACHED'), 20_000);
    await fixture.settle(device.close());
  });

  test('does not fetch the document once it has a pin', async () => {
    const fixture = await ProductFixture.withStation();
    const asked = publishDocument(fixture, FAULT);
    await fixture.attached();
    expect(asked).toEqual([]);
  });
});

describe('a device refuses', () => {
  const start = (options: ConstructorParameters<typeof Device>[0]) => {
    const device = new Device({ ...ids, serverUrl: SERVER_URL, p2pPort: 0, localPort: 0, ...options });
    device.setPrivateKey(device.createPrivateKey());
    return device.start();
  };

  test.each([
    ['no PEM', 'x', /no CERTIFICATE block/],
    ['a private key', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----', /private key among them/],
    [
      'a key beside a certificate',
      `${PEM_OF_ROOT}\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----`,
      /private key among them/,
    ],
    ['half a certificate', PEM_OF_ROOT.slice(0, 200), /no CERTIFICATE block/],
    ['a certificate that breaks off', PEM_OF_ROOT.replace('AAAAAAAA', ''), /damaged/],
    ['a certificate that is none', '-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----', /damaged/],
    ['a text without end', 'x'.repeat(1 << 21), /longer/],
  ])('%s as root certificates', (_, pem, message) => {
    const device = new Device();
    expect(() => device.setRootCerts(pem)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) }),
    );
  });

  test('root certificates beside a fingerprint, where they have no effect', async () => {
    const both = { serverFingerprint: 'ab'.repeat(32), rootCerts: PEM_OF_ROOT };
    await expect(start(both)).rejects.toMatchObject({ code: 'INVALID_STATE', message: expect.stringContaining('no effect') });
  });

  test('to start without a pin on a host without https', async () => {
    const fixture = new ProductFixture();
    const host = fixture.host('device');
    const { getHttps: _, ...environment } = withLog(host, host.log);
    await expect(start({ environment })).rejects.toMatchObject({ code: 'INVALID_STATE', message: expect.stringContaining('fingerprint') });
  });

  test('root certificates once it runs', { tags: ['slow'] }, async () => {
    const fixture = await ProductFixture.withStation();
    const { device } = await fixture.attached();
    expect(() => device.setRootCerts(PEM_OF_ROOT)).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
  });
});
