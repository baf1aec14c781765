import type { Limits } from '../../protocol/limits.ts';
import { CAPACITY as APPS, MAX_LENGTH, PAUSE, REQUESTS, TIMEOUT } from './key-sets.ts';
import { MAX_KEYS } from './keys.ts';
import { MAX_DEVICES, CAPACITY as TOKENS } from './verifier.ts';

export const station: Limits = {
  'Tokens of issuers that are remembered': {
    value: [TOKENS, MAX_DEVICES],
    unit: '#, with # names of devices in all',
    filledBy: 'holders of many valid tokens, or their issuer',
    next: 'Its token is checked again: the oldest is forgotten. A bad token takes no slot.',
    freedWhen: 'It expires, its key is withdrawn, or it makes way',
    test: 'test/server/jwt/verifier.test.ts',
  },
  'JWK Sets': {
    value: [MAX_LENGTH, MAX_KEYS, APPS],
    unit: '#B and # keys each, of # apps',
    filledBy: 'administrators of server keys',
    next: 'The set is fetched again: the one used least recently is forgotten. A larger set is refused.',
    freedWhen: 'Another app takes its place',
    test: ['test/server/jwt/key-sets.test.ts', 'test/server/jwt/keys.test.ts'],
  },
  'Requests for JWK Sets': {
    value: [PAUSE, REQUESTS.perKey, REQUESTS.total, TIMEOUT],
    unit: 'one at a time for each app, and one every #s; # for one organization, # in all; #s each',
    filledBy: 'strangers who know a server key and make up key ids; an organization whose issuers are slow',
    next: "The keys that are there; without any 5.03 with Max-Age 30. Other organizations' are fetched.",
    freedWhen: 'The issuer answers, or 5 s',
    test: 'test/server/jwt/key-sets.test.ts',
  },
};
