/**
 * A base station over TLS: its document, and a change of its certificate while 100 devices are attached. Real sockets,
 * real TLS.
 *
 * @module-tag slow
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../platform/environment.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { CONTENT_FORMAT_CBOR, DevicePath, encodeAttachRequest } from '../../protocol/control/index.ts';
import { fingerprint } from '../../protocol/identity/index.ts';
import { Host } from '../../runtime/host/index.ts';
import { StationProof } from '../../runtime/station/proof.ts';
import { openStore, startBasestation } from '../../server/index.ts';
import { authority, type ServerPair, serverPair } from '../support/certificates.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const DEVICES = 100;
const created = '2026-01-02T03:04:05.678Z';
const environment = nodeEnvironment();

/** Starts a station with this certificate. Returns it with the files that it reads. */
async function station(first: ServerPair) {
  const folder = temporaryDirectory();
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  const write = ({ cert, key }: ServerPair): void => {
    writeFileSync(files.certFile, cert);
    writeFileSync(files.keyFile, key);
  };
  write(first);
  const data = join(folder, 'data');
  const running = await startBasestation({
    data,
    port: 0,
    host: '127.0.0.1',
    tls: files,
    log: silentLog,
    settings: { connections: 2 * DEVICES },
  });
  onTestFinished(() => running.close());
  return { running, data, write };
}

function proof(port: number, rootCerts: string): StationProof {
  return new StationProof(environment, { host: '127.0.0.1', port, fingerprint: null, rootCerts });
}

/** Opens a lasting connection, and gets an answer over it. */
async function lasting(port: number, ca: string): Promise<{ socket: TLSSocket; health: () => Promise<string> }> {
  const socket = connect({ host: '127.0.0.1', port, ca });
  await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
  onTestFinished(() => void socket.destroy());
  const health = (): Promise<string> =>
    new Promise((resolve) => {
      socket.once('data', (data) => resolve(String(data).split('\r\n')[0] ?? ''));
      socket.write('GET /health HTTP/1.1\r\nhost: x\r\n\r\n');
    });
  return { socket, health };
}

/** Attaches `DEVICES` devices. */
async function attached(data: string, port: number, pin: string): Promise<Host> {
  const store = await openStore(data);
  await store.addOrganization({ organizationId: 'or', name: null, created });
  await store.addProduct({ productId: 'pr', organizationId: 'or', name: null, created });
  const host = await Host.open(environment, {
    identity: environment.crypto.generateKey(),
    binds: [{ port: 0 }],
    limits: { connections: DEVICES + 8 },
    core: { connections: DEVICES + 8 },
  });
  onTestFinished(() => host.close());
  const attach = async (_: unknown, index: number): Promise<number> => {
    const identity = environment.crypto.generateKey();
    const ids = { productId: 'pr', deviceId: `de-${index}` };
    await store.addDevice({ ...ids, name: null, fingerprint: fingerprint(identity.publicKey, environment.crypto), created });
    const session = await host.dials.connect({ name: 'station', address: '127.0.0.1', port, pin, identity });
    const payload = encodeAttachRequest({ ...ids, svcVersion: '1', appName: null, appVersion: null, redirected: false, tokens: null });
    return (await session.request({ method: 'POST', path: DevicePath.ATTACH, contentFormat: CONTENT_FORMAT_CBOR, payload })).status;
  };
  const statuses = await Promise.all(Array.from({ length: DEVICES }, attach));
  await store.close();
  expect(new Set(statuses)).toEqual(new Set([201]));
  return host;
}

test('a new certificate is used from then on and ends no connection, with 100 devices attached', async () => {
  const [before, after] = [await authority('Before'), await authority('After')];
  const [first, second] = [await serverPair(before), await serverPair(after)];
  const { running, data, write } = await station(first);
  const host = await attached(data, running.port, running.fingerprint);
  const kept = await lasting(running.port, before.pem);
  expect(await kept.health()).toBe('HTTP/1.1 200 OK');
  const address = { host: '127.0.0.1', port: running.port, urlPort: running.port, fingerprint: running.fingerprint };
  expect(await proof(running.port, before.pem).current()).toEqual(address);

  write(second);
  await running.reloadCertificates();
  await expect(proof(running.port, before.pem).current()).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED' });
  expect(await proof(running.port, after.pem).current()).toEqual(address);
  write({ cert: first.cert, key: second.key });
  await running.reloadCertificates();
  expect(await proof(running.port, after.pem).current()).toEqual(address);

  expect(await kept.health()).toBe('HTTP/1.1 200 OK');
  expect(kept.socket.destroyed).toBe(false);
  expect(host.sessions.size).toBe(DEVICES);
  expect(running.stats()).toMatchObject({ attached: DEVICES, sessions: DEVICES });
});
