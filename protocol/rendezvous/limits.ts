import type { Limits } from '../limits.ts';
import { MAX_ANSWERS } from './round.ts';
import { BASE_PACKETS, HEARD_CHECKS, MAX_CHECKS, MAX_PAIRS, ROUND_LIFETIME } from './round-budget.ts';
import {
  BURST,
  deviceLimits,
  MAX_SPRAYED,
  MAX_UNVALIDATED,
  OF_ALL_ROUNDS,
  PER_SECOND,
  SPRAY_LIFETIME,
  SPRAY_PER_SECOND,
  TRUSTED_BURST,
  TRUSTED_PER_SECOND,
} from './send-budget.ts';
import { SPRAY_PORTS, SPRAY_SOCKETS } from './spray.ts';

export const device: Limits = {
  'Rounds for direct paths': {
    value: [deviceLimits.rounds.known, deviceLimits.rounds.stranger, ROUND_LIFETIME],
    unit: '# of known peers and # of strangers at a time',
    protocol: 'round of a rendezvous',
    filledBy: 'those of the class; each peer as often as it likes',
    next:
      "Neither known peers nor strangers take the other's rounds. In the same class: no round, and the connection stays relayed; the " +
      'peer tries again with its back-off.',
    freedWhen: 'The round ends; #s',
    test: 'test/protocol/rendezvous/send-budget.test.ts',
  },
  'Addresses that get checks although the station has not reported them and they have not answered': {
    value: [deviceLimits.addresses, deviceLimits.ofStrangers, MAX_UNVALIDATED, deviceLimits.ofStrangers, MAX_UNVALIDATED],
    unit: '# a minute, # of them for strangers; # of each class that forged checks name',
    filledBy: 'those of the class',
    next:
      'Known peers have # that strangers cannot take. An address reported by the station needs none. Else no check to that address ' +
      'until it sends one; after # none at all.',
    freedWhen: 'A minute after its last packet; 30 min where a stranger named it',
    test: 'test/protocol/rendezvous/send-budget.test.ts',
  },
  'Packets to such an address': {
    value: [BASE_PACKETS, HEARD_CHECKS, OF_ALL_ROUNDS.stranger[0], OF_ALL_ROUNDS.known[0]],
    unit: '# a round, # more for checks from there; # in half an hour of all strangers, # a minute of all known peers',
    filledBy: 'those who name it',
    next: 'No further packet until it answers. Other addresses get theirs.',
    freedWhen: 'The time is over, or it answers a check',
    test: 'test/protocol/rendezvous/send-budget.test.ts',
  },
  Checks: {
    value: [BURST + PER_SECOND, MAX_CHECKS, MAX_PAIRS],
    unit: '# a second, # of a pair, # pairs of a round',
    protocol: 'checks: of a pair, a second of a host',
    filledBy: 'peers with a round',
    next: 'The check leaves later; rounds are paced at half of that',
    freedWhen: 'The rate allows the next; the round ends',
    test: 'test/protocol/rendezvous/send-budget.test.ts',
  },
  'Checks of the peer that a round answers': {
    value: [MAX_ANSWERS, ROUND_LIFETIME],
    filledBy: 'the peer of that round, and replays of its checks',
    next: 'No answer in that round. Other rounds answer theirs.',
    freedWhen: 'The round ends; #s',
    test: 'test/protocol/rendezvous/round.test.ts',
  },
  'Packets for strangers to addresses that the station reported and that have not answered': {
    value: [TRUSTED_BURST, TRUSTED_PER_SECOND],
    unit: '# at once, # a second',
    filledBy: 'strangers whose address the station reported',
    next: 'The address counts as one that the station did not report. Known peers have no such limit.',
    freedWhen: 'The rate allows the next',
    test: 'test/protocol/rendezvous/send-budget.test.ts',
  },
  Sprays: {
    value: [SPRAY_SOCKETS, SPRAY_PORTS, SPRAY_PER_SECOND, MAX_SPRAYED.known, MAX_SPRAYED.stranger, SPRAY_LIFETIME],
    unit:
      'one at a time, from # sockets or to # ports, # packets a second; each reason once an hour, for known peers unless it was ' +
      'answered, # reasons of known peers and # of strangers',
    protocol: 'sprayed stage: sockets, ports, ports a second',
    filledBy: 'peers whose address the station reported',
    next: "A known peer replaces a stranger's. In that class: no spray, the connection stays relayed.",
    freedWhen: '#s; the round ends; an hour',
    test: 'test/protocol/rendezvous/send-budget.test.ts',
  },
};
