/** `Connection.passwordAuthenticate`: every way it can end. */
import { beforeEach, describe, expect, test } from 'vitest';
import { PasswordAuthentication } from '../../client/password.ts';
import { Router } from '../../protocol/coap/index.ts';
import * as password from '../../protocol/password/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { PasswordDevice } from '../device/password/password-device.ts';
import { DEVICE_PORT } from '../support/fixture/identifiers.ts';

let under: PasswordDevice;
beforeEach(async () => {
  under = await PasswordDevice.make();
});

const rejects = (code: string) => expect.objectContaining({ code });

describe('passwordAuthenticate', () => {
  test('NOT_FOUND where the device has no password authentication', async () => {
    expect(await under.login(await under.connected(), 'owner', 'secret')).toBe('NOT_FOUND');
  });

  test('NOT_CONNECTED before connect, STOPPED after close', async () => {
    const connection = under.connection('device', under.device.localPort);
    await expect(connection.passwordAuthenticate('owner', 'secret')).rejects.toEqual(rejects('NOT_CONNECTED'));
    await under.sim.settle(connection.connect());
    await under.sim.settle(connection.close());
    await expect(connection.passwordAuthenticate('owner', 'secret')).rejects.toEqual(rejects('STOPPED'));
  });

  test.each([
    ['an empty password', 'owner', ''],
    ['a password of more than 1,024 bytes', 'owner', 'x'.repeat(1025)],
    ['a user name of more than 255 bytes', 'x'.repeat(256), 'secret'],
  ])('INVALID_ARGUMENT for %s, and no request is sent', async (_, username, secret) => {
    const connection = await under.connected();
    const { packetsSent } = connection.stats();
    expect(await under.login(connection, username, secret)).toBe('INVALID_ARGUMENT');
    expect(connection.stats().packetsSent).toBe(packetsSent);
  });

  test.each([
    ['composed', 'Zo\u00eb', 'decomposed', 'Zoe\u0308'],
    ['decomposed', 'Zoe\u0308', 'composed', 'Zo\u00eb'],
    ['with a no-break space', 'a\u00a0word', 'with a space', 'a word'],
  ])('a word set %s may be typed %s, as name and as password', async (_, set, __, typed) => {
    const names: string[] = [];
    under.device.onPasswordAuthenticationRequest((request) => {
      names.push(request.username);
      request.setPassword(set);
    });
    expect(await under.login(await under.connected(), typed, typed)).toBe('OK');
    expect(names).toEqual([password.opaqueString('the name', set)]);
  });

  test.each([
    ['case', 'zoe', 'Zoe'],
    ['width', 'Abc', '\uff21bc'],
  ])('a word of another %s is another password', async (_, set, typed) => {
    under.device.onPasswordAuthenticationRequest((request) => request.setPassword(set));
    expect(await under.login(await under.connected(), 'owner', typed)).toBe('UNAUTHORIZED');
  });

  test('OPERATION_IN_PROGRESS without an answer to the first', async () => {
    const session = { request: () => new Promise(() => {}) } as unknown as Session;
    const passwords = new PasswordAuthentication(session, under.crypto);
    void passwords.run('owner', 'secret');
    await expect(Promise.race([passwords.run('owner', 'secret'), null])).rejects.toEqual(rejects('OPERATION_IN_PROGRESS'));
  });

  test('OPERATION_IN_PROGRESS while another runs, which continues', { tags: ['slow'] }, async () => {
    under.device.onPasswordAuthenticationRequest((request) => request.setPassword('secret'));
    const connection = await under.connected();
    const first = connection.passwordAuthenticate('owner', 'secret');
    expect(await under.login(connection, 'owner', 'secret')).toBe('OPERATION_IN_PROGRESS');
    await under.sim.settle(first);
    expect(connection.verified).toBe('password');
  });

  test.each([
    ['this end closes', (): Promise<void> | undefined => undefined],
    ['the device closes', () => under.device.connection(1).close()],
  ])('STOPPED when %s meanwhile', async (_, end) => {
    under.device.onPasswordAuthenticationRequest(() => {});
    const connection = await under.connected();
    const login = connection.passwordAuthenticate('owner', 'secret').catch((error: { code: string }) => error.code);
    await under.sim.run(1000);
    await under.sim.settle(end() ?? connection.close());
    expect(await under.sim.settle(login)).toBe('STOPPED');
  });

  test('TOO_MANY_REQUESTS after too many wrong ones, and the right one succeeds later', { tags: ['slow'] }, async () => {
    under.device.onPasswordAuthenticationRequest((request) => request.setPassword('secret'));
    const connection = await under.connected();
    for (let i = 0; i < 5; i++) expect(await under.login(connection, 'owner', 'wrong')).toBe('UNAUTHORIZED');
    expect(await under.login(connection, 'owner', 'secret')).toBe('TOO_MANY_REQUESTS');
    await under.sim.run(2000);
    expect(await under.login(connection, 'owner', 'secret')).toBe('OK');
  });
});

describe('a device that violates the protocol', () => {
  const share = password.ristretto255Group.generator(new Uint8Array(64).fill(9));
  const offer = (given: Partial<password.PasswordOffer> = {}) =>
    password.encodePasswordOffer({ kdf: 0, salt: null, run: 1, share, ...given });
  const tag = password.encodePasswordConfirmation({ tag: new Uint8Array(64) });

  test.each<[string, string, Uint8Array | number, Uint8Array | number]>([
    ['says yes without knowing the password', 'UNAUTHORIZED', offer(), tag],
    ['sends no share', 'BAD_RESPONSE', offer({ share: new Uint8Array(32) }), tag],
    ['sends something else first', 'BAD_RESPONSE', Uint8Array.of(1), tag],
    ['sends something else last', 'BAD_RESPONSE', offer(), Uint8Array.of(1)],
    ['fails', 'BAD_RESPONSE', 500, tag],
    ['refuses the second step', 'UNAUTHORIZED', offer(), 401],
    ['has enough of it', 'TOO_MANY_REQUESTS', offer(), 429],
  ])('%s: %s', async (_, code, first, second) => {
    const router = new Router<Session>();
    const reply = (answer: Uint8Array | number) => () =>
      typeof answer === 'number' ? { status: answer } : { status: 201, contentFormat: 60, payload: answer };
    router.on('POST', password.PasswordPath.FIRST, reply(first));
    router.on('POST', password.PasswordPath.SECOND, reply(second));
    await under.fixture.raw.device({ machine: 'strange', addresses: [under.address()], router });
    const connection = under.connection('strange', DEVICE_PORT);
    await under.sim.settle(connection.connect());
    expect(await under.login(connection, 'owner', 'secret')).toBe(code);
    expect(connection.verified).toBe('none');
    if (code === 'UNAUTHORIZED') expect(await under.login(connection, 'owner', 'secret')).toBe('BAD_RESPONSE');
  });
});
