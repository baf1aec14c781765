/** What access control does on a running device: decisions, logins, tokens at the base station, connections of users that change or go. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Connection } from '../../client/node.ts';
import type { Denial, DeviceConnection, Iam } from '../../device/index.ts';
import { ids } from '../client/scene.ts';
import { iamOf, stateOf, user } from './iam/model.ts';
import { IamScene } from './iam/scene.ts';

let scene: IamScene;
afterEach(() => scene.close());

const refuses = (code: string) => expect.objectContaining({ code });

/** The scene with users that have the password `secret`; `owner` is an administrator. */
async function withUsers(...names: string[]): Promise<Iam> {
  const role = (name: string) => ({ role: name === 'owner' ? 'Administrator' : 'Guest', sct: `sct-of-${name}` });
  scene = await IamScene.attached({ state: stateOf(names.map((name) => user(name, role(name)))) });
  for (const name of names) await scene.settle(scene.iam.setUserPassword(name, 'secret'));
  return scene.iam;
}

/** The device's side of the newest connection. */
function seen(ref: number): DeviceConnection {
  return scene.device.connection(ref);
}

/** The key of a connection is from now on the user's. */
function paired(connection: Connection, username: string): Promise<void> {
  return scene.settle(scene.iam.update((draft) => draft.addUserFingerprint(username, connection.getClientFingerprint())));
}

const isClosed = ({ closeReason }: Connection): boolean => closeReason !== null;

describe('setIam', () => {
  test('is possible once, before start, and where nobody else decides', async () => {
    scene = await IamScene.make();
    const { device, iam } = scene;
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
    await scene.scene.start(scene.under);
    const other = (await scene.scene.device({ registered: false })).device;
    await scene.settle(other.start());
    expect(() => other.setIam(iamOf())).toThrow(refuses('INVALID_STATE'));
  });

  test('leaves a device as it was when it is refused', async () => {
    scene = await IamScene.make();
    const remove = scene.device.onPasswordAuthenticationRequest(() => {});
    expect(() => scene.device.setIam(scene.iam)).toThrow(refuses('IN_USE'));
    scene.device.onAuthorizationRequest(() => true)();
    remove();
    scene.device.setIam(scene.iam);
  });
});

describe('decisions', () => {
  test('an application asks for its own actions; what is refused is told', async () => {
    const iam = await withUsers('owner', 'guest');
    const denials: Denial[] = [];
    scene.device.onDenied((denial) => denials.push(denial));
    await scene.settle(
      iam.setConfiguration({
        policies: [{ id: 'Heat', statements: [{ effect: 'Allow', actions: ['Thermostat:Set'], conditions: [] }] }],
        roles: [
          { id: 'Administrator', policies: ['Heat'] },
          { id: 'Guest', policies: [] },
        ],
      }),
    );
    const connection = await scene.direct();
    const ask = (action: string) => scene.settle(scene.device.authorize(seen(1), action, { Room: 'hall' }));
    expect(await ask('Thermostat:Set')).toBe(false);
    await paired(connection, 'owner');
    expect([await ask('Thermostat:Set'), await ask('Thermostat:Get')]).toEqual([true, false]);
    const caller = { fingerprint: connection.getClientFingerprint(), isLocal: true };
    expect(denials).toEqual(['Thermostat:Set', 'Thermostat:Get'].map((action) => ({ caller, action, attributes: { Room: 'hall' } })));
  });

  test('know where the connection is: what is local only is refused through the base station', async () => {
    scene = await IamScene.attached({
      configuration: {
        policies: [
          {
            id: 'Near',
            statements: [
              {
                effect: 'Allow',
                actions: ['Thermostat:Set'],
                conditions: [{ operator: 'Bool', key: 'Connection:IsLocal', values: ['true'] }],
              },
            ],
          },
        ],
        roles: [{ id: 'Unpaired', policies: ['Near'] }],
        unpairedRole: 'Unpaired',
      },
    });
    await scene.direct();
    await scene.relayed();
    expect(await scene.settle(scene.device.authorize(seen(1), 'Thermostat:Set'))).toBe(true);
    expect(await scene.settle(scene.device.authorize(seen(2), 'Thermostat:Set'))).toBe(false);
  });

  test('tunnels: a guest is refused, a standard user is let through', async () => {
    const iam = await withUsers('guest');
    scene.device.addTcpTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 80 });
    const connection = await scene.relayed();
    const status = () => scene.request(connection, 'GET', '/tcp-tunnels/services/web');
    expect(await status()).toBe(403);
    await paired(connection, 'guest');
    expect(await status()).toBe(403);
    await scene.settle(iam.update((draft) => draft.setUserRole('guest', 'Standard')));
    expect(await status()).toBe(205);
  });
});

describe('a password session', () => {
  test.each(['direct', 'relayed'] as const)('acts as its user, %s', async (way) => {
    await withUsers('guest');
    const connection = await scene[way]();
    expect(await scene.me(connection)).toBeNull();
    expect(await scene.login(connection, 'guest', 'wrong')).toBe('UNAUTHORIZED');
    expect(await scene.login(connection, 'nobody', 'secret')).toBe('UNAUTHORIZED');
    expect(await scene.me(connection)).toBeNull();
    expect(await scene.login(connection, 'guest', 'secret')).toBe('OK');
    expect(await scene.me(connection)).toBe('guest');
    expect(await scene.me(await scene[way]())).toBeNull();
  });

  test('with the open password: only while open pairing by password is on and has a role; it is nobody', async () => {
    scene = await IamScene.attached();
    const { iam } = scene;
    await scene.settle(iam.setOpenPairingPassword('open sesame'));
    const connection = await scene.direct();
    expect(await scene.login(connection, '', 'open sesame')).toBe('UNAUTHORIZED');
    await scene.settle(iam.update((draft) => draft.setFlag('passwordOpenPairing', true)));
    expect(await scene.login(connection, '', 'open sesame')).toBe('UNAUTHORIZED');
    await scene.settle(iam.update((draft) => draft.setOpenPairingRole('Guest')));
    expect(await scene.login(connection, '', 'open sesame')).toBe('OK');
    expect(seen(1).passwordAuthenticationUsername).toBe('');
    expect(await scene.me(connection)).toBeNull();
    await scene.settle(iam.setOpenPairingPassword('another one'));
    expect(seen(1).isPasswordAuthenticated).toBe(false);
  });

  test('ends with the password, unless the key is the user’s', async () => {
    const iam = await withUsers('guest');
    const [one, two] = [await scene.direct(), await scene.direct()];
    for (const each of [one, two]) expect(await scene.login(each, 'guest', 'secret')).toBe('OK');
    await paired(two, 'guest');
    await scene.settle(iam.setUserPassword('guest', undefined));
    expect([seen(1).isPasswordAuthenticated, seen(2).isPasswordAuthenticated]).toEqual([false, true]);
    expect([await scene.me(one), await scene.me(two)]).toEqual([null, 'guest']);
  });

  test('follows a user that is renamed, and is not one who takes the name after', async () => {
    const iam = await withUsers('guest');
    const connection = await scene.direct();
    await scene.login(connection, 'guest', 'secret');
    await scene.settle(
      iam.update((draft) => {
        draft.setUserUsername('guest', 'friend');
        draft.createUser('guest', { role: 'Administrator' });
      }),
    );
    expect(await scene.me(connection)).toBe('friend');
  });

  test('that was begun with a password that is gone meanwhile fails', async () => {
    const iam = await withUsers('guest');
    const connection = await scene.direct();
    const login = connection.passwordAuthenticate('guest', 'secret').catch(({ code }: { code: string }) => code);
    // The device has the request, its answer is on its way.
    await scene.pass(15);
    await iam.update((draft) => draft.deleteUser('guest'));
    await iam.update((draft) => draft.createUser('guest', { role: 'Administrator' }));
    expect(await scene.settle(login)).toBe('UNAUTHORIZED');
    expect(seen(1).isPasswordAuthenticated).toBe(false);
  });
});

describe('server connect tokens', () => {
  /** What a fresh client with the token is told. */
  const connecting = (ServerConnectToken: string) =>
    scene.relayed({ ServerConnectToken }).then(
      () => 'OK',
      (error: { remoteChannelErrorCode: string }) => error.remoteChannelErrorCode,
    );

  test('of users and of open pairing let through; withdrawn they do not', async () => {
    const iam = await withUsers('guest');
    await scene.settle(iam.update((draft) => draft.setOpenPairingSct('sct-of-pairing')));
    await scene.pass(1000);
    expect([await connecting('sct-of-guest'), await connecting('sct-of-pairing')]).toEqual(['OK', 'OK']);
    await scene.settle(iam.update((draft) => draft.deleteUser('guest')));
    await scene.settle(iam.update((draft) => draft.setOpenPairingSct(undefined)));
    await scene.pass(1000);
    expect(scene.device.areServerConnectTokensSynchronized()).toBe(true);
    expect([await connecting('sct-of-guest'), await connecting('sct-of-pairing')]).toEqual(['TOKEN_REJECTED', 'TOKEN_REJECTED']);
  });

  test('a changed one takes the place of the one before', async () => {
    const iam = await withUsers('guest');
    await scene.settle(iam.update((draft) => draft.setUserSct('guest', 'sct-anew')));
    await scene.pass(1000);
    expect([await connecting('sct-of-guest'), await connecting('sct-anew')]).toEqual(['TOKEN_REJECTED', 'OK']);
  });

  test('that the application has, too, stays until both let go of it', async () => {
    const iam = await withUsers('guest');
    const { device } = scene;
    device.addServerConnectToken('sct-of-guest');
    await scene.settle(iam.update((draft) => draft.deleteUser('guest')));
    await scene.pass(1000);
    expect(await connecting('sct-of-guest')).toBe('OK');
    device.removeServerConnectToken('sct-of-guest');
    expect(device.areServerConnectTokensSynchronized()).toBe(false);
    await scene.pass(1000);
    expect(device.areServerConnectTokensSynchronized()).toBe(true);
    expect(await connecting('sct-of-guest')).toBe('TOKEN_REJECTED');
    expect(() => device.removeServerConnectToken('sct-of-guest')).toThrow(refuses('NOT_FOUND'));
  });

  test('a withdrawal while the base station is away counts when the device is attached again', async () => {
    const iam = await withUsers('guest');
    const { world } = scene.scene;
    world.stopStation();
    await scene.scene.until(scene.under, 'DETACHED', 1, 200_000);
    await scene.settle(iam.update((draft) => draft.deleteUser('guest')));
    await world.startStation();
    await scene.scene.until(scene.under, 'ATTACHED', 2, 200_000);
    expect(await connecting('sct-of-guest')).toBe('TOKEN_REJECTED');
  });
});

describe('a deleted user', () => {
  test('has no connection any more: by key, by password and bound; others stay', async () => {
    const iam = await withUsers('guest', 'owner');
    const byKey = await scene.relayed();
    await paired(byKey, 'guest');
    const byPassword = await scene.direct();
    await scene.login(byPassword, 'guest', 'secret');
    const bound = await scene.direct();
    scene.device.authorizeConnection(seen(3), 'guest');
    const owner = await scene.direct();
    await paired(owner, 'owner');
    await scene.login(owner, 'guest', 'secret');
    const stranger = await scene.direct();
    for (const each of [byKey, byPassword, bound]) expect(await scene.me(each)).toBe('guest');
    await scene.settle(iam.update((draft) => draft.deleteUser('guest')));
    await scene.pass(1000);
    expect([byKey, byPassword, bound, owner, stranger].map(isClosed)).toEqual([true, true, true, false, false]);
    expect([byKey, byPassword, bound].map(({ closeReason }) => closeReason?.code)).toEqual(['FORBIDDEN', 'FORBIDDEN', 'FORBIDDEN']);
    expect(seen(4).isPasswordAuthenticated).toBe(false);
  });

  test('whose name is taken in the same change has none either', async () => {
    const iam = await withUsers('guest');
    const connection = await scene.direct();
    await scene.login(connection, 'guest', 'secret');
    await scene.settle(
      iam.update((draft) => {
        draft.deleteUser('guest');
        draft.createUser('guest', { role: 'Administrator' });
      }),
    );
    await scene.pass(1000);
    expect(isClosed(connection)).toBe(true);
  });

  test('gets the answer that was being made, without rights meanwhile', async () => {
    const iam = await withUsers('guest');
    const connection = await scene.direct();
    await paired(connection, 'guest');
    let allowed: boolean | null = null;
    scene.device.addCoapResource('POST', '/leave', async ({ connection: from }) => {
      await iam.update((draft) => draft.deleteUser('guest'));
      allowed = await scene.device.authorize(from, 'IAM:ListUsers');
      return { status: 202 };
    });
    expect(await scene.request(connection, 'POST', '/leave')).toBe(202);
    expect([allowed, isClosed(connection)]).toEqual([false, false]);
    await scene.pass(2000);
    expect(isClosed(connection)).toBe(true);
  });

  test('a lost key alone costs the rights, not the connection', async () => {
    const iam = await withUsers('guest');
    const connection = await scene.direct();
    await paired(connection, 'guest');
    await scene.settle(iam.update((draft) => draft.removeUserFingerprint('guest', connection.getClientFingerprint())));
    await scene.pass(1000);
    expect([isClosed(connection), await scene.me(connection)]).toEqual([false, null]);
  });
});

describe('a user bound by the application', () => {
  test('acts until it is unbound; the key goes before; not on another connection', async () => {
    const iam = await withUsers('guest', 'owner');
    const connection = await scene.direct();
    scene.device.authorizeConnection(seen(1), 'guest');
    expect(await scene.me(connection)).toBe('guest');
    await scene.settle(iam.update((draft) => draft.setUserUsername('guest', 'friend')));
    expect(await scene.me(connection)).toBe('friend');
    await paired(connection, 'owner');
    expect(await scene.me(connection)).toBe('owner');
    scene.device.authorizeConnection(seen(1), null);
    expect(seen(1).boundUsername).toBeNull();
    expect(await scene.me(await scene.direct())).toBeNull();
  });

  test('must exist, the connection be open, and the device under access control', async () => {
    await withUsers('guest');
    const connection = await scene.direct();
    const far = seen(1);
    expect(() => scene.device.authorizeConnection(far, 'nobody')).toThrow(refuses('NOT_FOUND'));
    scene.device.authorizeConnection(far, 'guest');
    await scene.settle(connection.close());
    await scene.pass(1000);
    expect(far.boundUsername).toBeNull();
    expect(() => scene.device.authorizeConnection(far, 'guest')).toThrow(refuses('INVALID_CONNECTION'));
    const { device } = await scene.scene.device({ registered: false });
    expect(() => device.authorizeConnection(far, 'guest')).toThrow(refuses('INVALID_STATE'));
  });
});

test('nothing that happens to the state after close concerns the device', async () => {
  const iam = await withUsers('guest');
  await scene.settle(scene.device.close());
  await scene.settle(iam.update((draft) => draft.createUser('late')));
  expect(scene.device.areServerConnectTokensSynchronized()).toBe(true);
  expect([scene.device.productId, scene.device.deviceId]).toEqual([ids.productId, ids.deviceId]);
});
