/** The authorization listener: there is one; a missing, silent or failing one means no. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Authorization, type AuthorizationListener } from '../../device/authorization.ts';
import type { DeviceConnection } from '../../device/connections.ts';
import { silentLog } from '../../platform/environment.ts';
import { Emitter } from '../../runtime/emitter.ts';
import { nativeSimulation } from '../support/simulation.ts';

const connection = { isOpen: true, onClosed: () => () => {} } as unknown as DeviceConnection;

async function verdict(listener: AuthorizationListener | null): Promise<boolean> {
  const { clock } = nativeSimulation({ seed: 1 }).host('device');
  const authorization = new Authorization({ clock, log: silentLog }, () => {});
  if (listener !== null) authorization.listen(listener);
  return authorization.allows(connection, 'TcpTunnel:Connect', { 'TcpTunnel:ServiceId': 'web' });
}

describe('authorization', () => {
  test.each<[string, AuthorizationListener | null, boolean]>([
    ['no listener', null, false],
    ['true', () => true, true],
    ['a promise of true', async () => true, true],
    ['false', () => false, false],
    ['no verdict', () => undefined, false],
    ['something that is merely truthy', () => 'yes' as never, false],
    [
      'a listener that throws',
      () => {
        throw new Error('broken');
      },
      false,
    ],
    ['a listener that rejects', () => Promise.reject(new Error('broken')), false],
  ])('%s', async (_, listener, expected) => {
    expect(await verdict(listener)).toBe(expected);
  });

  test('the listener gets action, attributes and connection', async () => {
    const heard: unknown[] = [];
    await verdict((request) => {
      heard.push(request);
      return true;
    });
    expect(heard).toEqual([{ action: 'TcpTunnel:Connect', attributes: { 'TcpTunnel:ServiceId': 'web' }, connection }]);
  });

  test('a listener that is removed twice does not remove the next one', async () => {
    const { clock } = nativeSimulation({ seed: 1 }).host('device');
    const authorization = new Authorization({ clock, log: silentLog }, () => {});
    const stop = authorization.listen(() => false);
    expect(() => authorization.listen(() => true)).toThrow(expect.objectContaining({ code: 'IN_USE' }));
    stop();
    authorization.listen(() => true);
    stop();
    expect(await authorization.allows(connection, 'Thermostat:Set')).toBe(true);
  });

  test.each([
    [9_999, true],
    [10_001, false],
  ])('a verdict after %i ms counts: %s', async (delay, expected) => {
    const sim = nativeSimulation({ seed: 1 });
    const { clock } = sim.host('device');
    const denied: unknown[] = [];
    const authorization = new Authorization({ clock, log: silentLog }, (request) => denied.push(request));
    authorization.listen(() => new Promise((resolve) => void clock.schedule(delay, () => resolve(true))));
    expect(await sim.settle(authorization.allows(connection, 'Thermostat:Set'))).toBe(expected);
    expect(sim.now).toBe(Math.min(delay, 10_000));
    expect(denied).toEqual(expected ? [] : [{ action: 'Thermostat:Set', attributes: {}, connection }]);
  });
});

describe('a grant', () => {
  let allowed: Set<string>;
  let revoked: string[];
  let asked: number;
  let authorization: Authorization;
  const grant = (action: string) => authorization.grant(connection, action, {}, () => revoked.push(action));
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  beforeEach(() => {
    [allowed, revoked, asked] = [new Set(['a', 'b']), [], 0];
    authorization = new Authorization({ clock: nativeSimulation().host('device').clock, log: silentLog }, () => {});
    authorization.listen(({ action }) => {
      asked++;
      return allowed.has(action);
    });
  });

  test('is null when it is denied', async () => {
    expect(await grant('c')).toBeNull();
    authorization.reconsider();
    await settled();
    expect([asked, revoked]).toEqual([1, []]);
  });

  test('is revoked once, when the listener says no', async () => {
    await grant('a');
    await grant('b');
    allowed.delete('a');
    for (let change = 0; change < 3; change++) authorization.reconsider();
    await settled();
    expect([revoked, asked]).toEqual([['a'], 4]);
    allowed.delete('b');
    authorization.reconsider();
    await settled();
    expect([revoked, asked]).toEqual([['a', 'b'], 5]);
  });

  test('is revoked once, though the listener is asked twice before it answers', async () => {
    const held = authorization.grant(connection, 'a', {}, () => revoked.push('a'));
    await held;
    allowed.delete('a');
    authorization.reconsider();
    await Promise.resolve();
    authorization.reconsider();
    await settled();
    expect([revoked, asked]).toEqual([['a'], 3]);
  });

  test('that was released is not asked for again', async () => {
    const held = await grant('a');
    held?.release();
    held?.release();
    allowed.clear();
    authorization.reconsider();
    await settled();
    expect([revoked, asked]).toEqual([[], 1]);
  });

  test('is revoked with its connection, and not asked for again', async () => {
    const events = new Emitter<{ closed: null }>(silentLog);
    let isOpen = true;
    const closing = {
      get isOpen() {
        return isOpen;
      },
      onClosed: (listener: () => void) => events.on('closed', listener),
    };
    const held = await authorization.grant(closing as DeviceConnection, 'a', {}, () => revoked.push('a'));
    isOpen = false;
    events.emit('closed', null);
    allowed.clear();
    authorization.reconsider();
    await settled();
    expect([revoked, asked]).toEqual([['a'], 1]);
    held?.release();
    expect(await authorization.grant(closing as DeviceConnection, 'a', {}, () => {})).toBeNull();
    expect(asked).toBe(1);
  });

  test('that is withdrawn while the listener decides is revoked', async () => {
    const waiting = grant('a');
    allowed.clear();
    authorization.reconsider();
    await waiting;
    await settled();
    expect(revoked).toEqual(['a']);
  });

  test('whose revocation fails does not keep others from being revoked', async () => {
    await authorization.grant(connection, 'a', {}, () => {
      throw new Error('broken');
    });
    await grant('b');
    allowed.clear();
    authorization.reconsider();
    await settled();
    expect(revoked).toEqual(['b']);
  });
});
