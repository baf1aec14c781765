import type { Limits } from '../../protocol/limits.ts';
import { RESERVE } from './disk-room.ts';
import { MAX_FILES } from './files.ts';
import { MAX_LEFTOVERS } from './leftovers.ts';
import { CONNECTIONS, MAX_REQUEST, PATIENCE } from './owner-socket.ts';

export const device: Limits = {
  'Files of `svc device`': {
    value: [RESERVE, MAX_FILES],
    unit: 'the disk except for #B, and # files',
    filledBy: 'users with `File:Transfer`',
    next: 'A file for which there is no room is refused; parts count as files. Users, settings and audit log are saved.',
    freedWhen: 'The owner removes files on the device; a part goes after 24 h',
    test: ['test/cli/device-files.test.ts', 'test/cli/files/resume.test.ts'],
  },
  'Files that `svc device` hashes, to compare what both ends have, and lists of all files': {
    unit: "one at a time for a client's key",
    filledBy: 'that client',
    next: 'Its other transfers and lists wait. Those of other clients begin.',
    freedWhen: 'The file is hashed, the list is read, the client is gone, or it has begun the same transfer again',
    test: 'test/cli/files/turns.test.ts',
  },
  'Parts of files at `svc device`': {
    value: MAX_LEFTOVERS,
    filledBy: 'users with `File:Transfer`',
    next:
      'A slot: the client with the most parts loses its oldest, among equals the oldest of all. A client without one gets one, and ' +
      'keeps it beside a client with more.',
    freedWhen: '24 h after the last byte, by a timer and at each start; the file is whole; it no longer has room',
    test: 'test/cli/files/leftovers.test.ts',
  },
  'Connections to the socket of `svc device`': {
    value: [CONNECTIONS, PATIENCE, MAX_REQUEST, PATIENCE],
    unit: '#, #s and # characters each',
    filledBy: "programs of the device's own user",
    next: 'It is refused until one ends; the device serves its clients',
    freedWhen: 'The request is answered; #s',
    test: 'test/cli/owner-socket.test.ts',
  },
};
