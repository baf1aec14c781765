import type { Limits } from '../limits.ts';
import { MAX_MESSAGE } from './questions.ts';
import { MAX_WAITING } from './responder.ts';
import { MAX_ADDRESSES, MAX_INSTANCES, MAX_SRV, MAX_TXT } from './scan-cache.ts';
import { MAX_MESSAGES, MAX_TXT_BYTES, STEP, TRIES } from './scanner.ts';

export const device: Limits = {
  'mDNS questions that wait': {
    value: MAX_WAITING,
    filledBy: 'anyone on the link',
    next: 'No answer: the querier repeats',
    freedWhen: 'The answer is sent',
    test: 'test/protocol/discovery/responder.test.ts',
  },
};

export const client: Limits = {
  'Services that a client knows on one link': {
    value: MAX_INSTANCES,
    unit: '#, besides those it asked for by name',
    filledBy: 'anyone on the link',
    next:
      'A slot: the oldest service that lacks a port, address or TXT record is dropped, or else the one heard longest ago. A device ' +
      'asked for by name always has a slot, and is never dropped.',
    freedWhen: 'It says goodbye; its records have expired, after 75 minutes at most; no listener is left',
    test: 'test/protocol/discovery/scanner-hostile.test.ts',
  },
  'Records of a service': {
    value: [MAX_SRV, MAX_TXT, MAX_TXT_BYTES, MAX_ADDRESSES],
    unit: '# SRV, # TXT of # bytes, # addresses of each family for a host',
    filledBy: 'anyone on the link',
    next: 'It is kept: what was heard longest ago is dropped',
    freedWhen: 'As above',
    test: 'test/protocol/discovery/scanner-hostile.test.ts',
  },
  'Questions of a client for records that strangers leave out': {
    value: [MAX_MESSAGES, MAX_MESSAGE, STEP, TRIES],
    unit: '# messages of # bytes every #s, each question # times',
    filledBy: 'anyone on the link',
    next: 'It is asked in one of the next steps; a device that was asked for by name is asked for at once',
    freedWhen: 'The step is over',
    test: ['test/protocol/discovery/scanner-hostile.test.ts', 'test/protocol/discovery/scanner.test.ts'],
  },
};
