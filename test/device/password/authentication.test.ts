/** Password authentication end to end, in virtual time over direct paths. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { PasswordAuthenticationRequest } from '../../../device/index.ts';
import { encode } from '../../../protocol/cbor/index.ts';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import * as password from '../../../protocol/password/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { PasswordDevice } from './password-device.ts';

const { FIRST, SECOND } = password.PasswordPath;
const DAY = 86_400_000;

let under: PasswordDevice;
beforeEach(async () => {
  under = await PasswordDevice.make();
});

/** The device knows one user. */
const knowsOwner = (request: PasswordAuthenticationRequest) => request.setPassword(request.username === 'owner' ? 'secret' : null);
const request = (username: string) => password.encodePasswordRequest({ username });
const proof = (share: Uint8Array = new Uint8Array(32), tag: Uint8Array = new Uint8Array(64)) =>
  password.encodePasswordProof({ share, tag });
/** An element that belongs to no secret. */
const share = password.ristretto255Group.generator(new Uint8Array(64).fill(9));

async function status(session: Session, path: string, payload: Uint8Array, contentFormat?: number): Promise<number> {
  return (await under.post(session, path, payload, contentFormat)).status;
}

describe('a login', () => {
  test('with the listener’s password authenticates both ends, until the connection closes', async () => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const connection = await under.connected();
    const seen = under.device.connection(1);
    expect([seen.isPasswordAuthenticated, connection.verified]).toEqual([false, 'none']);
    expect(() => seen.passwordAuthenticationUsername).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    expect(await under.login(connection, 'owner', 'secret')).toBe('OK');
    expect([seen.isPasswordAuthenticated, seen.passwordAuthenticationUsername, connection.verified]).toEqual([true, 'owner', 'password']);
    await under.sim.settle(connection.close());
    await under.sim.run(1000);
    expect(seen.isPasswordAuthenticated).toBe(false);
    expect(() => seen.passwordAuthenticationUsername).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('succeeds with the verifier of a store of users', async () => {
    under.device.setPasswordSource(await under.users({ owner: 'secret', '': 'open' }));
    const connection = await under.connected({ local: false });
    expect(await under.login(connection, 'owner', 'wrong')).toBe('UNAUTHORIZED');
    expect(connection.verified).toBe('none');
    expect(await under.login(connection, 'owner', 'secret')).toBe('OK');
    expect(await under.login(connection, '', 'open')).toBe('OK');
    expect(under.device.connection(1).passwordAuthenticationUsername).toBe('');
  });

  test.each([
    ['a wrong password', 'owner', 'wrong'],
    ['nobody', 'nobody', 'secret'],
  ])('fails with %s, and a later one can still succeed', { tags: ['slow'] }, async (_, username, secret) => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const connection = await under.connected();
    expect(await under.login(connection, username, secret)).toBe('UNAUTHORIZED');
    expect(under.device.connection(1).isPasswordAuthenticated).toBe(false);
    expect(await under.login(connection, 'owner', 'secret')).toBe('OK');
  });

  test('on one connection does not authenticate another', async () => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const [one] = [await under.connected(), await under.connected()];
    expect(await under.login(one, 'owner', 'secret')).toBe('OK');
    expect(under.device.connection(2).isPasswordAuthenticated).toBe(false);
  });

  test('works with lost and duplicated packets', async () => {
    under = await PasswordDevice.make({ delay: 20, loss: 0.2, duplicate: 0.2 });
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    expect(await under.login(await under.connected(), 'owner', 'secret')).toBe('OK');
  });
});

describe('the listener', () => {
  test('is a single one, and can be replaced', () => {
    const remove = under.device.onPasswordAuthenticationRequest(knowsOwner);
    expect(() => under.device.onPasswordAuthenticationRequest(knowsOwner)).toThrow(expect.objectContaining({ code: 'IN_USE' }));
    remove();
    under.device.onPasswordAuthenticationRequest(knowsOwner);
  });

  test('gets user name and connection, and may answer later, once', async () => {
    const requests: PasswordAuthenticationRequest[] = [];
    under.device.onPasswordAuthenticationRequest((asked) => requests.push(asked));
    const connection = await under.connected();
    const login = connection.passwordAuthenticate('owner', 'secret');
    await under.sim.run(10_000);
    const [asked] = requests;
    expect([asked!.username, asked!.connection.clientFingerprint]).toEqual(['owner', connection.getClientFingerprint()]);
    expect(() => asked!.setPassword('')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    asked!.setPassword('secret');
    expect(() => asked!.setPassword('secret')).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    await under.sim.settle(login);
    expect(connection.verified).toBe('password');
  });

  test.each<[string, (asked: PasswordAuthenticationRequest) => unknown]>([
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken'))],
    ['says nothing', () => {}],
  ])('that %s knows no user', async (_, listener) => {
    under.device.onPasswordAuthenticationRequest(listener);
    expect(await under.login(await under.connected(), 'owner', 'secret')).toBe('UNAUTHORIZED');
  });
});

describe('the answer is', () => {
  test('4.04 without a source of passwords', async () => {
    const session = await under.raw();
    expect([await status(session, FIRST, request('owner')), await status(session, SECOND, proof())]).toEqual([404, 404]);
  });

  test('4.15 to another content format, 4.00 to an invalid body', async () => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await under.raw();
    for (const path of [FIRST, SECOND]) {
      expect(await status(session, path, request('owner'), 42)).toBe(415);
      for (const body of [new Uint8Array(), Uint8Array.of(0xff), encode([]), encode({}), encode({ Username: 1, Y: 'x', Tag: 2 })])
        expect(await status(session, path, body)).toBe(400);
    }
  });

  test('4.00 to a second step without a first, and to a repeated second step', async () => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await under.raw();
    expect(await status(session, SECOND, proof(share))).toBe(400);
    expect(await status(session, FIRST, request('owner'))).toBe(201);
    expect(await status(session, SECOND, proof(share))).toBe(401);
    expect(await status(session, SECOND, proof(share))).toBe(400);
  });

  test.each([
    ['the neutral element', new Uint8Array(32)],
    ['no element', new Uint8Array(32).fill(0xff)],
  ])('4.00 to %s, which is charged like a guess', { tags: ['slow'] }, async (_, bytes) => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await under.raw();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push(await status(session, FIRST, request('owner')), await status(session, SECOND, proof(bytes)));
    expect(statuses.slice(0, 10)).toEqual([201, 400, 201, 400, 201, 400, 201, 400, 201, 400]);
    expect(statuses.slice(10)).toEqual([429, 400]);
  });

  test('4.29 to a step that arrives while another is being prepared', async () => {
    under.device.onPasswordAuthenticationRequest(() => {});
    const session = await under.raw();
    const first = session.request({ method: 'POST', path: FIRST, contentFormat: 60, payload: request('owner') });
    await under.sim.run(100);
    expect(await status(session, FIRST, request('owner'))).toBe(429);
    expect((await under.sim.settle(first)).status).toBe(201);
  });

  test('4.29 to more than five first steps a second, before any source is asked', async () => {
    let asked = 0;
    under.device.onPasswordAuthenticationRequest((each) => {
      asked++;
      each.setPassword('secret');
    });
    const session = await under.raw();
    const statuses: number[] = [];
    for (let i = 0; i < 8; i++) statuses.push(await status(session, FIRST, request(`user${i}`)));
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429, 429]);
    expect(asked).toBe(5);
  });

  test('a new number for every run', async () => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await under.raw();
    const runs: number[] = [];
    for (let i = 0; i < 3; i++) runs.push(password.decodePasswordOffer((await under.post(session, FIRST, request('owner'))).payload!).run);
    expect(runs).toEqual([1, 2, 3]);
  });
});

describe('a stranger', () => {
  const sizes = ({ status: code, contentFormat, payload }: CoapResponse) => [code, contentFormat, payload?.length];

  test.each(['listener', 'store'])('cannot distinguish a user from an unknown name: %s', async (kind) => {
    if (kind === 'listener') under.device.onPasswordAuthenticationRequest(knowsOwner);
    else under.device.setPasswordSource(await under.users({ owner: 'secret' }));
    const session = await under.raw();
    const seen = [];
    for (const name of ['owner', 'loser']) {
      const began = under.sim.now;
      const steps = [await under.post(session, FIRST, request(name)), await under.post(session, SECOND, proof(share))];
      seen.push([...steps.map(sizes), under.sim.now - began]);
    }
    expect(seen[0]).toEqual(seen[1]);
    await under.sim.run(1000);
    const salts = [];
    for (const name of ['owner', 'loser', 'loser', 'other'])
      salts.push(password.decodePasswordOffer((await under.post(session, FIRST, request(name))).payload!).salt);
    expect(salts[1]).toEqual(salts[2]);
    if (kind === 'store') expect(new Set(salts.map(String)).size).toBe(3);
  });

  /** Guesses one after the other, 2,000 in a day. @returns how many passwords were tested */
  async function testedOf(guesses: number): Promise<number> {
    under.device.setPasswordSource(await under.users({ owner: 'secret' }));
    const session = await under.raw({ local: false });
    let tested = 0;
    let refused = 0;
    const step = DAY / 2_000;
    for (let at = under.sim.now + step, i = 0; i < guesses; i++, at += step) {
      const first = await status(session, FIRST, request('owner'));
      if (first === 201) tested += Number((await status(session, SECOND, proof(share))) === 401);
      else refused += Number(first === 429);
      await under.sim.run(Math.max(0, at - under.sim.now));
    }
    expect(tested + refused).toBe(guesses);
    return tested;
  }

  test('tests few passwords of a user in three quarters of an hour, with 60 guesses', { tags: ['slow'] }, async () => {
    const tested = await testedOf(60);
    expect(tested).toBeGreaterThan(15);
    expect(tested).toBeLessThanOrEqual(19);
  });

  test('tests at most 120 passwords of a user in a day, with 2,000 guesses', { tags: ['slow'] }, async () => {
    const tested = await testedOf(2_000);
    expect(tested).toBeGreaterThan(15);
    expect(tested).toBeLessThanOrEqual(120);
  });

  test('locks out no owner with a paired key or at home', { tags: ['slow'] }, async () => {
    const owner = await under.connected({ local: false });
    under.device.setPasswordSource(await under.users({ owner: 'secret' }, [['owner', owner.getClientFingerprint()]]));
    const home = await under.connected();
    const stranger = await under.connected({ local: false });
    const outcomes = new Set<string>();
    for (let i = 0; i < 20; i++) outcomes.add(await under.login(stranger, 'owner', `guess${i}`));
    expect([...outcomes]).toEqual(['UNAUTHORIZED', 'TOO_MANY_REQUESTS']);
    expect(await under.login(stranger, 'owner', 'secret')).toBe('TOO_MANY_REQUESTS');
    expect(await under.login(owner, 'owner', 'secret')).toBe('OK');
    expect(await under.login(home, 'owner', 'secret')).toBe('OK');
  });

  test.each(['listener', 'store'])('causes as much work with an unknown name as with a user: %s', async (kind) => {
    if (kind === 'listener') under.device.onPasswordAuthenticationRequest(knowsOwner);
    else under.device.setPasswordSource(await under.users({ owner: 'secret' }));
    const session = await under.raw();
    // The handshake does some work, too.
    await under.post(session, FIRST, request('first'));
    const keyed = vi.spyOn(under.crypto, 'hmacSha256');
    const work = [];
    for (const name of ['owner', 'loser']) {
      keyed.mockClear();
      await under.post(session, FIRST, request(name));
      work.push(keyed.mock.calls.length);
    }
    expect(work[0]).toBeGreaterThan(0);
    expect(work[0]).toBe(work[1]);
  });

  test('finds nothing of a password in the log', async () => {
    under.device.onPasswordAuthenticationRequest(knowsOwner);
    const connection = await under.connected();
    await under.login(connection, 'owner', 'secret');
    await under.login(connection, 'owner', 'wrong-one');
    expect(under.logged.join('\n')).not.toMatch(/secret|wrong-one/);
  });
});
