/** The authorization listener: one, and no where it is missing, silent or failing. */
import { describe, expect, test } from 'vitest';
import { Authorization, type AuthorizationListener } from '../../device/authorization.ts';
import type { DeviceConnection } from '../../device/connections.ts';
import { silentLog } from '../../transport/environment.ts';
import { nativeSimulation } from '../support/simulation.ts';

const connection = {} as DeviceConnection;

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

  test('the listener hears action, attributes and who asks', async () => {
    const heard: unknown[] = [];
    await verdict((request) => {
      heard.push(request);
      return true;
    });
    expect(heard).toEqual([{ action: 'TcpTunnel:Connect', attributes: { 'TcpTunnel:ServiceId': 'web' }, connection }]);
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
