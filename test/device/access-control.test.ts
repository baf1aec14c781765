/**
 * Access control on a running device: decisions, logins, tokens at the base station, and connections of users that are
 * changed or deleted.
 */
import { describe, expect, test } from 'vitest';
import { type Connection, IamUtil } from '../../client/node.ts';
import type { Denial, DeviceConnection, Iam } from '../../device/index.ts';
import { ids } from '../support/fixture/identifiers.ts';
import { GuardedDevice } from './iam/guarded-device.ts';
import { iamOf, stateOf, user } from './iam/model.ts';

let guarded: GuardedDevice;

const refuses = (code: string) => expect.objectContaining({ code });

/** The guarded device, with users whose password is `secret`; `owner` is an administrator. */
async function withUsers(...names: string[]): Promise<Iam> {
  const role = (name: string) => ({ role: name === 'owner' ? 'Administrator' : 'Guest', sct: `sct-of-${name}` });
  guarded = await GuardedDevice.attached({ state: stateOf(names.map((name) => user(name, role(name)))) });
  for (const name of names) await guarded.settle(guarded.iam.setUserPassword(name, 'secret'));
  return guarded.iam;
}

/** The device's side of the newest connection. */
function seen(ref: number): DeviceConnection {
  return guarded.device.connection(ref);
}

/** Pairs the key of a connection with the user. */
function paired(connection: Connection, username: string): Promise<void> {
  return guarded.settle(guarded.iam.update((draft) => draft.addUserFingerprint(username, connection.getClientFingerprint())));
}

const isClosed = ({ closeReason }: Connection): boolean => closeReason !== null;

describe('setIam', () => {
  test('is possible once, before start, and only without a listener that decides', async () => {
    guarded = await GuardedDevice.make();
    const { device, iam } = guarded;
    const removeAuthorization = device.onAuthorizationRequest(() => true);
    expect(() => device.setIam(iam)).toThrow(refuses('IN_USE'));
    removeAuthorization();
    const removePasswords = device.onPasswordAuthenticationRequest(() => {});
    expect(() => device.setIam(iam)).toThrow(refuses('IN_USE'));
    removePasswords();
    device.setIam(iam);
    expect(() => device.setIam(iam)).toThrow(refuses('IN_USE'));
    expect(() => device.onAuthorizationRequest(() => true)).toThrow(refuses('IN_USE'));
    expect(() => device.onPasswordAuthenticationRequest(() => {})).toThrow(refuses('IN_USE'));
    await guarded.fixture.start(guarded.under);
    const other = (await guarded.fixture.device({ registered: false })).device;
    await guarded.settle(other.start());
    expect(() => other.setIam(iamOf())).toThrow(refuses('INVALID_STATE'));
  });

  test('leaves a device unchanged when it is refused', async () => {
    guarded = await GuardedDevice.make();
    const remove = guarded.device.onPasswordAuthenticationRequest(() => {});
    expect(() => guarded.device.setIam(guarded.iam)).toThrow(refuses('IN_USE'));
    guarded.device.onAuthorizationRequest(() => true)();
    remove();
    guarded.device.setIam(guarded.iam);
  });
});

describe('decisions', () => {
  test('answer an application that asks for actions of its own, and report a refusal', { tags: ['slow'] }, async () => {
    const iam = await withUsers('owner', 'guest');
    const denials: Denial[] = [];
    guarded.device.onDenied((denial) => denials.push(denial));
    await guarded.settle(
      iam.setConfiguration({
        policies: [{ id: 'Heat', statements: [{ effect: 'Allow', actions: ['Thermostat:Set'], conditions: [] }] }],
        roles: [
          { id: 'Administrator', policies: ['Heat'] },
          { id: 'Guest', policies: [] },
        ],
      }),
    );
    const connection = await guarded.direct();
    const ask = (action: string) => guarded.settle(guarded.device.authorize(seen(1), action, { Room: 'hall' }));
    expect(await ask('Thermostat:Set')).toBe(false);
    await paired(connection, 'owner');
    expect([await ask('Thermostat:Set'), await ask('Thermostat:Get')]).toEqual([true, false]);
    const caller = { fingerprint: connection.getClientFingerprint(), isLocal: true };
    expect(denials).toEqual(['Thermostat:Set', 'Thermostat:Get'].map((action) => ({ caller, action, attributes: { Room: 'hall' } })));
  });
});

describe('a password session', () => {
  test('with the open password lasts while open pairing by password is on and has a role, and acts as no user', {
    tags: ['slow'],
  }, async () => {
    guarded = await GuardedDevice.attached();
    const { iam } = guarded;
    await guarded.settle(iam.setOpenPairingPassword('open sesame'));
    const connection = await guarded.direct();
    expect(await guarded.login(connection, '', 'open sesame')).toBe('UNAUTHORIZED');
    await guarded.settle(iam.update((draft) => draft.setFlag('passwordOpenPairing', true)));
    expect(await guarded.login(connection, '', 'open sesame')).toBe('UNAUTHORIZED');
    await guarded.settle(iam.update((draft) => draft.setOpenPairingRole('Guest')));
    expect(await guarded.login(connection, '', 'open sesame')).toBe('OK');
    expect(seen(1).passwordAuthenticationUsername).toBe('');
    expect(await guarded.me(connection)).toBeNull();
    await guarded.settle(iam.setOpenPairingPassword('another one'));
    expect(seen(1).isPasswordAuthenticated).toBe(false);
  });

  test('ends with the password, unless the key is paired with the user', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest');
    const [one, two] = [await guarded.direct(), await guarded.direct()];
    for (const each of [one, two]) expect(await guarded.login(each, 'guest', 'secret')).toBe('OK');
    await paired(two, 'guest');
    await guarded.settle(iam.setUserPassword('guest', undefined));
    expect([seen(1).isPasswordAuthenticated, seen(2).isPasswordAuthenticated]).toEqual([false, true]);
    expect([await guarded.me(one), await guarded.me(two)]).toEqual([null, 'guest']);
  });

  test('follows a renamed user, and does not act as a user who takes the old name later', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest');
    const connection = await guarded.direct();
    await guarded.login(connection, 'guest', 'secret');
    await guarded.settle(
      iam.update((draft) => {
        draft.setUserUsername('guest', 'friend');
        draft.createUser('guest', { role: 'Administrator' });
      }),
    );
    expect(await guarded.me(connection)).toBe('friend');
  });

  test('fails when its password is removed while the login runs', async () => {
    const iam = await withUsers('guest');
    const connection = await guarded.direct();
    const login = connection.passwordAuthenticate('guest', 'secret').catch(({ code }: { code: string }) => code);
    // The device has the request; its answer is on the way.
    await guarded.pass(15);
    await iam.update((draft) => draft.deleteUser('guest'));
    await iam.update((draft) => draft.createUser('guest', { role: 'Administrator' }));
    expect(await guarded.settle(login)).toBe('UNAUTHORIZED');
    expect(seen(1).isPasswordAuthenticated).toBe(false);
  });
});

test('the count of password attempts survives a restart', { tags: ['slow'] }, async () => {
  let document: unknown;
  const passwordThrottle = () => ({
    stored: document,
    save: async (next: unknown) => {
      document = structuredClone(next);
    },
  });
  const state = stateOf([user('guest', { role: 'Guest' })]);
  guarded = await GuardedDevice.attached({ state, passwordThrottle: passwordThrottle() });
  await guarded.settle(guarded.iam.setUserPassword('guest', 'secret'));
  for (let attempt = 0; attempt < 7; attempt++) await guarded.login(await guarded.relayed(), 'guest', 'wrong');
  await guarded.settle(guarded.device.close());
  guarded = await GuardedDevice.attached({ state, passwordThrottle: passwordThrottle() });
  await guarded.settle(guarded.iam.setUserPassword('guest', 'secret'));
  expect(await guarded.login(await guarded.relayed(), 'guest', 'secret')).toBe('TOO_MANY_REQUESTS');
});

describe('server connect tokens', () => {
  /** OK, or the error code that a fresh client with the token gets. */
  const connecting = (ServerConnectToken: string) =>
    guarded.relayed({ ServerConnectToken }).then(
      () => 'OK',
      (error: { remoteChannelErrorCode: string }) => error.remoteChannelErrorCode,
    );

  test('of users and of open pairing admit a client; after withdrawal they do not', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest');
    await guarded.settle(iam.update((draft) => draft.setOpenPairingSct('sct-of-pairing')));
    await guarded.pass(1000);
    expect([await connecting('sct-of-guest'), await connecting('sct-of-pairing')]).toEqual(['OK', 'OK']);
    await guarded.settle(iam.update((draft) => draft.deleteUser('guest')));
    await guarded.settle(iam.update((draft) => draft.setOpenPairingSct(undefined)));
    await guarded.pass(1000);
    expect(guarded.device.areServerConnectTokensSynchronized()).toBe(true);
    expect([await connecting('sct-of-guest'), await connecting('sct-of-pairing')]).toEqual(['TOKEN_REJECTED', 'TOKEN_REJECTED']);
  });

  test('that the application has, too, remain until both drop them', async () => {
    const iam = await withUsers('guest');
    const { device } = guarded;
    device.addServerConnectToken('sct-of-guest');
    await guarded.settle(iam.update((draft) => draft.deleteUser('guest')));
    await guarded.pass(1000);
    expect(await connecting('sct-of-guest')).toBe('OK');
    device.removeServerConnectToken('sct-of-guest');
    expect(device.areServerConnectTokensSynchronized()).toBe(false);
    await guarded.pass(1000);
    expect(device.areServerConnectTokensSynchronized()).toBe(true);
    expect(await connecting('sct-of-guest')).toBe('TOKEN_REJECTED');
    expect(() => device.removeServerConnectToken('sct-of-guest')).toThrow(refuses('NOT_FOUND'));
  });

  test('withdrawn while the base station is away are refused after the device attaches again', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest');
    guarded.station.kill();
    await guarded.fixture.until(guarded.under, 'DETACHED', 1, 200_000);
    await guarded.settle(iam.update((draft) => draft.deleteUser('guest')));
    await guarded.station.start();
    await guarded.fixture.until(guarded.under, 'ATTACHED', 2, 200_000);
    expect(await connecting('sct-of-guest')).toBe('TOKEN_REJECTED');
  });
});

describe('a deleted user', () => {
  test('loses its connections, whether by key, by password or bound; others keep theirs', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest', 'owner');
    const byKey = await guarded.relayed();
    await paired(byKey, 'guest');
    const byPassword = await guarded.direct();
    await guarded.login(byPassword, 'guest', 'secret');
    const bound = await guarded.direct();
    guarded.device.authorizeConnection(seen(3), 'guest');
    const owner = await guarded.direct();
    await paired(owner, 'owner');
    await guarded.login(owner, 'guest', 'secret');
    const stranger = await guarded.direct();
    for (const each of [byKey, byPassword, bound]) expect(await guarded.me(each)).toBe('guest');
    await guarded.settle(iam.update((draft) => draft.deleteUser('guest')));
    await guarded.pass(1000);
    expect([byKey, byPassword, bound, owner, stranger].map(isClosed)).toEqual([true, true, true, false, false]);
    expect([byKey, byPassword, bound].map(({ closeReason }) => closeReason?.code)).toEqual(['FORBIDDEN', 'FORBIDDEN', 'FORBIDDEN']);
    expect(seen(4).isPasswordAuthenticated).toBe(false);
  });

  test('loses its connections even if its name is taken in the same change', async () => {
    const iam = await withUsers('guest');
    const connection = await guarded.direct();
    await guarded.login(connection, 'guest', 'secret');
    await guarded.settle(
      iam.update((draft) => {
        draft.deleteUser('guest');
        draft.createUser('guest', { role: 'Administrator' });
      }),
    );
    await guarded.pass(1000);
    expect(isClosed(connection)).toBe(true);
  });

  test('gets the answer that was in preparation, and has no rights meanwhile', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest');
    const connection = await guarded.direct();
    await paired(connection, 'guest');
    let allowed: boolean | null = null;
    guarded.device.addCoapResource('POST', '/leave', async ({ connection: from }) => {
      await iam.update((draft) => draft.deleteUser('guest'));
      allowed = await guarded.device.authorize(from, 'IAM:ListUsers');
      return { status: 202 };
    });
    expect(await guarded.request(connection, 'POST', '/leave')).toBe(202);
    expect([allowed, isClosed(connection)]).toEqual([false, false]);
    await guarded.pass(2000);
    expect(isClosed(connection)).toBe(true);
  });

  test('has the day on which its key was last used', async () => {
    await withUsers('guest');
    const connection = await guarded.direct();
    await paired(connection, 'guest');
    const { fingerprints } = await guarded.settle(new IamUtil(connection).getCurrentUser());
    const day = new Date(guarded.fixture.sim.wallTime).toISOString().slice(0, 10);
    expect(fingerprints).toEqual([{ fingerprint: connection.getClientFingerprint(), lastUsed: day }]);
  });

  test('that only loses its key loses its rights, not the connection', async () => {
    const iam = await withUsers('guest');
    const connection = await guarded.direct();
    await paired(connection, 'guest');
    await guarded.settle(iam.update((draft) => draft.removeUserFingerprint('guest', connection.getClientFingerprint())));
    await guarded.pass(1000);
    expect([isClosed(connection), await guarded.me(connection)]).toEqual([false, null]);
  });
});

describe('a user bound by the application', () => {
  test('counts until it is unbound, after the key, and on that connection alone', { tags: ['slow'] }, async () => {
    const iam = await withUsers('guest', 'owner');
    const connection = await guarded.direct();
    guarded.device.authorizeConnection(seen(1), 'guest');
    expect(await guarded.me(connection)).toBe('guest');
    await guarded.settle(iam.update((draft) => draft.setUserUsername('guest', 'friend')));
    expect(await guarded.me(connection)).toBe('friend');
    await paired(connection, 'owner');
    expect(await guarded.me(connection)).toBe('owner');
    guarded.device.authorizeConnection(seen(1), null);
    expect(seen(1).boundUsername).toBeNull();
    expect(await guarded.me(await guarded.direct())).toBeNull();
  });

  test('must exist, on an open connection of a device under access control', async () => {
    await withUsers('guest');
    const connection = await guarded.direct();
    const far = seen(1);
    expect(() => guarded.device.authorizeConnection(far, 'nobody')).toThrow(refuses('NOT_FOUND'));
    guarded.device.authorizeConnection(far, 'guest');
    await guarded.settle(connection.close());
    await guarded.pass(1000);
    expect(far.boundUsername).toBeNull();
    expect(() => guarded.device.authorizeConnection(far, 'guest')).toThrow(refuses('INVALID_CONNECTION'));
    const { device } = await guarded.fixture.device({ registered: false });
    expect(() => device.authorizeConnection(far, 'guest')).toThrow(refuses('INVALID_STATE'));
  });
});

test('changes of the state after close do not affect the device', async () => {
  const iam = await withUsers('guest');
  await guarded.settle(guarded.device.close());
  await guarded.settle(iam.update((draft) => draft.createUser('late')));
  expect(guarded.device.areServerConnectTokensSynchronized()).toBe(true);
  expect([guarded.device.productId, guarded.device.deviceId]).toEqual([ids.productId, ids.deviceId]);
});
