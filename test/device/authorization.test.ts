/** The authorization listener: one, and no where it is missing, silent or failing. */
import { describe, expect, test } from 'vitest';
import { Authorization, type AuthorizationListener } from '../../device/authorization.ts';
import type { DeviceConnection } from '../../device/connections.ts';
import { silentLog } from '../../transport/environment.ts';

const connection = {} as DeviceConnection;

async function verdict(listener: AuthorizationListener | null): Promise<boolean> {
  const authorization = new Authorization(silentLog);
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
});
