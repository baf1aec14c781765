import type { Limits } from '../../protocol/limits.ts';
import { ALL, MAX_SOURCES, SOURCE } from './arrival-limit.ts';
import { MAX_QUEUED } from './connected-udp.ts';
import { MAX_WAITING } from './hop-limits.ts';
import { CONNECTIONS, PATIENCE } from './lock-sign.ts';
import { LINGER } from './tcp.ts';

export const device: Limits = {
  'A TCP tunnel connection whose one side was reset': {
    value: LINGER,
    unit: "64 KiB and the stream's window, until the other side has what came before",
    filledBy: 'clients with permission, the service',
    next: 'It counts as a connection; others keep theirs',
    freedWhen: 'The other side has all of it; #s without progress; the session ends',
    test: 'test/platform/node/tcp.test.ts',
  },
  'Bytes for a UDP service that wait at the socket of its tunnel': {
    value: MAX_QUEUED,
    unit: '#B, and the datagram that exceeds it',
    filledBy: 'clients with permission that send more than the kernel takes',
    next: 'Dropped, as on any network. Each flow has a socket of its own.',
    freedWhen: 'The kernel has taken them; the socket closes',
    test: 'test/platform/node/connected-udp.test.ts',
  },
  'Datagrams with their own hop limit that wait at one socket': {
    value: MAX_WAITING,
    unit: '# for each family',
    filledBy: 'peers that have it send more than leave',
    next: 'Dropped, as on any network: a later round sends again. Packets without one wait at most until these have left.',
    freedWhen: 'They have left; the socket closes',
    test: 'test/platform/node/hop-limits.test.ts',
  },
  'mDNS datagrams that a device or client looks at': {
    value: [SOURCE.burst, SOURCE.rate, MAX_SOURCES, ALL.burst, ALL.rate],
    unit: '# at once and # a second of one source, of which # are counted; # at once and # a second of all',
    filledBy: 'anyone on the link; with forged addresses all of it',
    next: 'A datagram of another source is looked at, until the rate of all is used up: then the querier or the responder repeats',
    freedWhen: 'The rate allows the next; another source takes its place',
    test: 'test/platform/node/arrival-limit.test.ts',
  },
};

export const both: Limits = {
  'Connections to the socket of a lock in a directory of state': {
    value: [CONNECTIONS, PATIENCE, PATIENCE],
    unit: '#, #s each',
    filledBy: "programs of the owner's own user",
    next: 'The lock is held: another owner is refused, without the name of the process that has it',
    freedWhen: 'The line has been sent and the other end closes; #s',
    test: 'test/platform/node/lock.test.ts',
  },
};
