/** Where data is kept when no directory is given. */
import { expect, test } from 'vitest';
import { defaultDataDirectory } from '../../cli/frame/data-directory.ts';

test.each([
  ['/var/state', '/var/state/svc/basestation'],
  [undefined, '/home/ann/.local/state/svc/basestation'],
  ['', '/home/ann/.local/state/svc/basestation'],
  ['state', '/home/ann/.local/state/svc/basestation'],
])('XDG_STATE_HOME %s leads to %s', (stateHome, expected) => {
  expect(defaultDataDirectory('basestation', { stateHome, home: '/home/ann' })).toBe(expected);
});

test('a device has a directory of its own', () => {
  expect(defaultDataDirectory('device', { stateHome: undefined, home: '/home/ann' })).toBe('/home/ann/.local/state/svc/device');
});
