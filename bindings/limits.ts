import { DEFAULTS, MEMORY_PER_STREAM } from './module.ts';
import { MESSAGE_LIMIT } from './options.ts';

export const both = {
  'Packet slots in the core': {
    value: [32, 128],
    unit: '# to #, shared by the sockets',
    core: ['BATCH', 'MAX_SLOTS'],
    filledBy: 'peers behind a socket that stalls',
    next: 'A connection on another socket sends from its own share. Sockets kept after a sprayed stage have one share together.',
    freedWhen: 'The socket gives the packet back',
    test: ['test/protocol/endpoint/room.test.ts', 'test/runtime/host/stalled-socket.test.ts', 'test/runtime/driver-sockets.test.ts'],
  },
};

export const device = {
  'Stream records of the core': {
    value: DEFAULTS.memory / MEMORY_PER_STREAM,
    unit: '#, half of them for byte streams',
    filledBy: 'connected clients',
    next: 'The last eighth is for peers that hold few: a stream opens, a message gets through',
    freedWhen: 'The stream or message ends',
    test: 'test/bindings/fairness.test.ts',
  },
  'Bytes of streams received and not read': {
    value: [DEFAULTS.memory, 16_384, 2 * MESSAGE_LIMIT],
    unit: "about a quarter of the core's #B",
    setting: '`limitStreamSegments`',
    protocol: 'least MAX_DATA window',
    core: ['MIN_WINDOW'],
    filledBy: 'connected clients, with streams that the application does not read',
    next:
      'Up to half: all. Up to 13/16: streams of #B instead of 64, and on a new connection #B for all its streams; event ' +
      'CRAMPED, a line of the log, `svc doctor`. Then streams that are read continue, and connections that hold little get theirs',
    freedWhen: 'It is read; the stream or connection ends',
    test: ['test/bindings/unread.test.ts', 'test/bindings/fairness.test.ts', 'test/bindings/bounded.test.ts'],
  },
  'Bytes of streams to send': {
    value: DEFAULTS.memory,
    unit: "about a quarter of the core's #B",
    setting: '`limitStreamSegments`',
    filledBy: 'clients that acknowledge nothing',
    next:
      'When half is used, a connection may hold a quarter of what is left, and of the last eighth an equal part: beside eight that ' +
      'vanished it still sends at full rate',
    freedWhen: 'It is acknowledged; the stream or connection ends',
    test: 'test/bindings/window.test.ts',
  },
  'Datagrams of one connection': {
    value: [64, 256, 16],
    unit: '# that wait for the reader; # to be sent, # while half of the memory for messages is in use',
    core: ['MAX_RECEIVED', 'MAX_OUTGOING', 'MAX_WHEN_SCARCE'],
    filledBy: 'that client',
    next: 'Of received ones the oldest is dropped, of others the newest, on that connection alone',
    freedWhen: 'It is read, or sent',
    test: 'test/bindings/streams.test.ts',
  },
};
