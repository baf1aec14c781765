import type { Limits } from '../../protocol/limits.ts';
import { MAX_ADOPTED } from './agent-runner.ts';
import { OF_OTHERS, OF_TRUSTED } from './samplings.ts';

export const device: Limits = {
  'Samplings at the STUN ports that the base station names': {
    value: [OF_TRUSTED, OF_TRUSTED, OF_OTHERS],
    unit:
      '# at once and # a minute for trusted peers, # for all others, each of at most 9 requests of 20 bytes to ports that do not ' +
      'answer and 12 to others; simultaneous ones share one result',
    filledBy: 'peers that begin rounds; a dishonest base station names the ports',
    next:
      "Neither trusted peers nor others take the other's samplings. In the same class the last result is used: sequential ports are " +
      'predicted less well.',
    freedWhen: 'The rate allows the next',
    test: 'test/runtime/rendezvous/abuse.test.ts',
  },
  'Sockets that a device keeps for one client of a sprayed stage': {
    value: MAX_ADOPTED,
    unit: '# a round',
    filledBy: 'the client of that round',
    next:
      'Further ones are closed with the round. Others have sockets of their own. All that the device keeps have one share of the ' +
      "packet slots together, so the device's own sockets send as if it kept only one.",
    freedWhen: 'The client no longer uses a path on it; the connection ends',
    test: ['test/client/direct-paths.test.ts', 'test/runtime/host/stalled-socket.test.ts'],
  },
};
