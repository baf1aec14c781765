/** Why a database cannot be opened, in words. */
import { expect, test } from 'vitest';
import { openingProblem } from '../../../server/storage/opening-problem.ts';

const FILE = '/data/basestation.sqlite';
const refusing = (where: string, code: string) => (path: string) => {
  if (path === where) throw Object.assign(new Error(code), { code });
};

test.each<[string, string, (path: string) => void, string]>([
  [
    'on a file system that became read-only',
    'unable to open database file',
    refusing('/data', 'EROFS'),
    'the file system of /data is read-only: make it writable, or choose another data directory',
  ],
  [
    'on one that became read-only between two statements',
    'attempt to write a readonly database',
    refusing('/data', 'EROFS'),
    'the file system of /data is read-only: make it writable, or choose another data directory',
  ],
  [
    'of another user',
    'unable to open database file',
    refusing(FILE, 'EACCES'),
    `this user may not write to ${FILE}: run as its owner, or choose another data directory`,
  ],
  [
    'in no directory',
    'ConnectionFailed("Unable to open connection to local database: 14")',
    () => {},
    'no such directory, or no permission',
  ],
  ['for a reason that the system does not see', 'unable to open database file', () => {}, 'unable to open database file'],
  ['that is damaged', 'database disk image is malformed', refusing('/data', 'EROFS'), 'database disk image is malformed'],
])('a database %s', (_, message, access, expected) => {
  expect(openingProblem(new Error(message), FILE, access)).toBe(expected);
});
