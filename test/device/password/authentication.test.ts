/** Password authentication end to end, in virtual time over direct paths. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PasswordAuthenticationRequest } from '../../../device/index.ts';
import { encode } from '../../../protocol/cbor/index.ts';
import { type CoapResponse, Router } from '../../../protocol/coap/index.ts';
import * as password from '../../../protocol/password/index.ts';
import { Host } from '../../../transport/host/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import { size } from '../../support/size.ts';
import { ids, PasswordScene } from './scene.ts';

const { FIRST, SECOND } = password.PasswordPath;
const DAY = 86_400_000;

let scene: PasswordScene;
beforeEach(async () => {
  scene = await PasswordScene.make();
});
afterEach(() => scene.close());

/** The device knows one user. */
const knowsOwner = (request: PasswordAuthenticationRequest) => request.setPassword(request.username === 'owner' ? 'secret' : null);
const request = (username: string) => password.encodePasswordRequest({ username });
const proof = (share: Uint8Array = new Uint8Array(32), tag: Uint8Array = new Uint8Array(64)) =>
  password.encodePasswordProof({ share, tag });
/** An element, of nobody's secret. */
const share = password.ristretto255Group.generator(new Uint8Array(64).fill(9));

async function status(session: Session, path: string, payload: Uint8Array, contentFormat?: number): Promise<number> {
  return (await scene.post(session, path, payload, contentFormat)).status;
}

describe('a login', () => {
  test('with the password of the listener: both ends are sure of each other, until the connection closes', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const connection = await scene.connected();
    const seen = scene.device.connection(1);
    expect([seen.isPasswordAuthenticated, connection.verified]).toEqual([false, 'none']);
    expect(() => seen.passwordAuthenticationUsername).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    expect(await scene.login(connection, 'owner', 'secret')).toBe('OK');
    expect([seen.isPasswordAuthenticated, seen.passwordAuthenticationUsername, connection.verified]).toEqual([true, 'owner', 'password']);
    await scene.sim.settle(connection.close());
    await scene.sim.run(1000);
    expect(seen.isPasswordAuthenticated).toBe(false);
    expect(() => seen.passwordAuthenticationUsername).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('with the verifier of a store of users', async () => {
    scene.device.setPasswordSource(await scene.users({ owner: 'secret', '': 'open' }));
    const connection = await scene.connected({ local: false });
    expect(await scene.login(connection, 'owner', 'wrong')).toBe('UNAUTHORIZED');
    expect(connection.verified).toBe('none');
    expect(await scene.login(connection, 'owner', 'secret')).toBe('OK');
    expect(await scene.login(connection, '', 'open')).toBe('OK');
    expect(scene.device.connection(1).passwordAuthenticationUsername).toBe('');
  });

  test.each([
    ['a wrong password', 'owner', 'wrong'],
    ['nobody', 'nobody', 'secret'],
  ])('fails with %s, and a later one still can succeed', async (_, username, secret) => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const connection = await scene.connected();
    expect(await scene.login(connection, username, secret)).toBe('UNAUTHORIZED');
    expect(scene.device.connection(1).isPasswordAuthenticated).toBe(false);
    expect(await scene.login(connection, 'owner', 'secret')).toBe('OK');
  });

  test('of one connection says nothing of another', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const [one] = [await scene.connected(), await scene.connected()];
    expect(await scene.login(one, 'owner', 'secret')).toBe('OK');
    expect(scene.device.connection(2).isPasswordAuthenticated).toBe(false);
  });

  test('works where packets are lost and come twice', async () => {
    await scene.close();
    scene = await PasswordScene.make({ delay: 20, loss: 0.2, duplicate: 0.2 });
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    expect(await scene.login(await scene.connected(), 'owner', 'secret')).toBe('OK');
  });
});

describe('the listener', () => {
  test('is one only, and can be replaced', () => {
    const remove = scene.device.onPasswordAuthenticationRequest(knowsOwner);
    expect(() => scene.device.onPasswordAuthenticationRequest(knowsOwner)).toThrow(expect.objectContaining({ code: 'IN_USE' }));
    remove();
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
  });

  test('hears who asks and may answer later, once', async () => {
    const requests: PasswordAuthenticationRequest[] = [];
    scene.device.onPasswordAuthenticationRequest((asked) => requests.push(asked));
    const connection = await scene.connected();
    const login = connection.passwordAuthenticate('owner', 'secret');
    await scene.sim.run(10_000);
    const [asked] = requests;
    expect([asked!.username, asked!.connection.clientFingerprint]).toEqual(['owner', connection.getClientFingerprint()]);
    expect(() => asked!.setPassword('')).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    asked!.setPassword('secret');
    expect(() => asked!.setPassword('secret')).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    await scene.sim.settle(login);
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
  ])('that %s knows nobody', async (_, listener) => {
    scene.device.onPasswordAuthenticationRequest(listener);
    expect(await scene.login(await scene.connected(), 'owner', 'secret')).toBe('UNAUTHORIZED');
  });
});

describe('what is answered', () => {
  test('4.04 without anyone who knows passwords', async () => {
    const session = await scene.raw();
    expect([await status(session, FIRST, request('owner')), await status(session, SECOND, proof())]).toEqual([404, 404]);
  });

  test('4.15 to another content format, 4.00 to a body that cannot be read', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await scene.raw();
    for (const path of [FIRST, SECOND]) {
      expect(await status(session, path, request('owner'), 42)).toBe(415);
      for (const body of [new Uint8Array(), Uint8Array.of(0xff), encode([]), encode({}), encode({ Username: 1, Y: 'x', Tag: 2 })])
        expect(await status(session, path, body)).toBe(400);
    }
  });

  test('4.00 to a second step without a first, and to a second second step', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await scene.raw();
    expect(await status(session, SECOND, proof(share))).toBe(400);
    expect(await status(session, FIRST, request('owner'))).toBe(201);
    expect(await status(session, SECOND, proof(share))).toBe(401);
    expect(await status(session, SECOND, proof(share))).toBe(400);
  });

  test.each([
    ['the neutral element', new Uint8Array(32)],
    ['no element', new Uint8Array(32).fill(0xff)],
  ])('4.00 to %s, which is charged like a guess', async (_, bytes) => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await scene.raw();
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push(await status(session, FIRST, request('owner')), await status(session, SECOND, proof(bytes)));
    expect(statuses.slice(0, 10)).toEqual([201, 400, 201, 400, 201, 400, 201, 400, 201, 400]);
    expect(statuses.slice(10)).toEqual([429, 400]);
  });

  test('4.29 to a step that comes while another is being begun', async () => {
    scene.device.onPasswordAuthenticationRequest(() => {});
    const session = await scene.raw();
    const first = session.request({ method: 'POST', path: FIRST, contentFormat: 60, payload: request('owner') });
    await scene.sim.run(100);
    expect(await status(session, FIRST, request('owner'))).toBe(429);
    expect((await scene.sim.settle(first)).status).toBe(201);
  });

  test('4.29 to more than five first steps a second, before anyone is asked', async () => {
    let asked = 0;
    scene.device.onPasswordAuthenticationRequest((each) => {
      asked++;
      each.setPassword('secret');
    });
    const session = await scene.raw();
    const statuses: number[] = [];
    for (let i = 0; i < 8; i++) statuses.push(await status(session, FIRST, request(`user${i}`)));
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429, 429]);
    expect(asked).toBe(5);
  });

  test('every run has a number of its own', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const session = await scene.raw();
    const runs: number[] = [];
    for (let i = 0; i < 3; i++) runs.push(password.decodePasswordOffer((await scene.post(session, FIRST, request('owner'))).payload!).run);
    expect(runs).toEqual([1, 2, 3]);
  });
});

describe('a stranger', () => {
  const sizes = ({ status: code, contentFormat, payload }: CoapResponse) => [code, contentFormat, payload?.length];

  test.each(['listener', 'store'])('cannot tell a user from nobody: %s', async (kind) => {
    if (kind === 'listener') scene.device.onPasswordAuthenticationRequest(knowsOwner);
    else scene.device.setPasswordSource(await scene.users({ owner: 'secret' }));
    const session = await scene.raw();
    const seen = [];
    for (const name of ['owner', 'loser']) {
      const began = scene.sim.now;
      const steps = [await scene.post(session, FIRST, request(name)), await scene.post(session, SECOND, proof(share))];
      seen.push([...steps.map(sizes), scene.sim.now - began]);
    }
    expect(seen[0]).toEqual(seen[1]);
    await scene.sim.run(1000);
    const salts = [];
    for (const name of ['owner', 'loser', 'loser', 'other'])
      salts.push(password.decodePasswordOffer((await scene.post(session, FIRST, request(name))).payload!).salt);
    expect(salts[1]).toEqual(salts[2]);
    if (kind === 'store') expect(new Set(salts.map(String)).size).toBe(3);
  });

  test('tests at most 120 passwords of a user in a day, with 10,000 guesses', { timeout: 120_000 }, async () => {
    scene.device.setPasswordSource(await scene.users({ owner: 'secret' }));
    const session = await scene.raw({ local: false });
    let tested = 0;
    let refused = 0;
    const step = DAY / 10_000;
    const guesses = size(1_000, 10_000);
    for (let at = scene.sim.now + step, i = 0; i < guesses; i++, at += step) {
      const first = await status(session, FIRST, request('owner'));
      if (first === 201) tested += Number((await status(session, SECOND, proof(share))) === 401);
      else refused += Number(first === 429);
      await scene.sim.run(Math.max(0, at - scene.sim.now));
    }
    expect(tested + refused).toBe(guesses);
    expect(tested).toBeGreaterThan(15);
    expect(tested).toBeLessThanOrEqual(120);
  });

  test('locks out no owner: whose key is paired, and who is at home', async () => {
    const owner = await scene.connected({ local: false });
    scene.device.setPasswordSource(await scene.users({ owner: 'secret' }, [['owner', owner.getClientFingerprint()]]));
    const home = await scene.connected();
    const stranger = await scene.connected({ local: false });
    const outcomes = new Set<string>();
    for (let i = 0; i < 20; i++) outcomes.add(await scene.login(stranger, 'owner', `guess${i}`));
    expect([...outcomes]).toEqual(['UNAUTHORIZED', 'TOO_MANY_REQUESTS']);
    expect(await scene.login(stranger, 'owner', 'secret')).toBe('TOO_MANY_REQUESTS');
    expect(await scene.login(owner, 'owner', 'secret')).toBe('OK');
    expect(await scene.login(home, 'owner', 'secret')).toBe('OK');
  });

  test('in the middle of a first contact, who passes everything on, gains nothing and is found out', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const environment = scene.environment('middle');
    const router = new Router<Session>();
    const passed: string[] = [];
    const middle = await scene.sim.settle(
      Host.open(environment, {
        identity: environment.crypto.generateKey(),
        binds: [{ port: 5592 }],
        responder: () => [`device:${ids.productId}.${ids.deviceId}`, 'device'],
        info: { ProductId: ids.productId, DeviceId: ids.deviceId },
        router,
      }),
    );
    scene.ends(() => middle.close());
    const onward = await scene.sim.settle(scene.dial(middle));
    for (const path of [FIRST, SECOND])
      router.on('POST', path, async ({ payload }) => {
        passed.push(path);
        const {
          status: code,
          contentFormat = 60,
          payload: body,
        } = await onward.request({ method: 'POST', path, contentFormat: 60, payload });
        return { status: code, contentFormat, payload: body ?? new Uint8Array() };
      });
    const victim = scene.connection('middle', 5592);
    await scene.sim.settle(victim.connect());
    expect(victim.getDeviceFingerprint()).toBe(middle.fingerprint);
    expect(await scene.login(victim, 'owner', 'secret')).toBe('UNAUTHORIZED');
    expect(passed).toEqual([FIRST, SECOND]);
    expect(victim.verified).toBe('none');
    expect(scene.device.connection(1).isPasswordAuthenticated).toBe(false);
  });

  test.each(['listener', 'store'])('finds no less work done for a user than for nobody: %s', async (kind) => {
    if (kind === 'listener') scene.device.onPasswordAuthenticationRequest(knowsOwner);
    else scene.device.setPasswordSource(await scene.users({ owner: 'secret' }));
    const session = await scene.raw();
    // The handshake has work of its own.
    await scene.post(session, FIRST, request('first'));
    const keyed = vi.spyOn(scene.crypto, 'hmacSha256');
    const work = [];
    for (const name of ['owner', 'loser']) {
      keyed.mockClear();
      await scene.post(session, FIRST, request(name));
      work.push(keyed.mock.calls.length);
    }
    expect(work[0]).toBeGreaterThan(0);
    expect(work[0]).toBe(work[1]);
  });

  test('finds nothing of a password in the log', async () => {
    scene.device.onPasswordAuthenticationRequest(knowsOwner);
    const connection = await scene.connected();
    await scene.login(connection, 'owner', 'secret');
    await scene.login(connection, 'owner', 'wrong-one');
    expect(scene.logged.join('\n')).not.toMatch(/secret|wrong-one/);
  });
});
