/** The tables of docs/iam.md for the settings of a user. */
import { key } from '../model.ts';
import { type Body, cbor } from './endpoint-bench.ts';
import { bad, type Case, FULL, long, none, type Reference } from './reference-cases.ts';

/** Cases that all settings of a user share. */
function setting(
  name: string,
  good: readonly (readonly [string, Body])[],
  wrong: readonly (readonly [string, Body])[],
  more: { readonly statuses?: readonly number[]; readonly cases?: readonly Case[] } = {},
): Reference {
  const [, body = none] = good[0] ?? [];
  const path = `/iam/users/ann/${name}`;
  return {
    endpoint: `PUT /iam/users/{username}/${name}`,
    statuses: [204, 400, 403, 404, ...(more.statuses ?? []), 500],
    order: 'body, action',
    body,
    cases: [
      ...good.map(([why, value]): Case => [204, why, 'admin', path, value]),
      ...bad('admin', path, [...wrong, ['a number', cbor(7)], ['a text of 1024 bytes', cbor(long(1024))]]),
      [403, 'denied', 'ann', `/iam/users/bob/${name}`, body],
      [403, 'denied to an unpaired client', 'stranger', path, body],
      [404, 'no such user', 'admin', `/iam/users/ghost/${name}`, body],
      [500, 'the disk is full', 'admin', path, body, FULL],
      ...(more.cases ?? []),
    ],
  };
}

export const settings: readonly Reference[] = [
  setting(
    'username',
    [
      ['another name', cbor('anna')],
      ['a name of 64 bytes', cbor(long(64))],
    ],
    [
      ['null', cbor(null)],
      ['an empty name', cbor('')],
      ['an invalid name', cbor('Ann')],
      ['a name of 65 bytes', cbor(long(65))],
    ],
    {
      statuses: [409],
      cases: [
        [409, 'taken', 'admin', '/iam/users/ann/username', cbor('bob')],
        [409, 'the same name', 'admin', '/iam/users/ann/username', cbor('ann')],
        [403, 'one’s own', 'ann', '/iam/users/ann/username', cbor('anna')],
      ],
    },
  ),
  setting(
    'display-name',
    [
      ['a name', cbor('Änne')],
      ['none', cbor(null)],
      ['64 bytes', cbor(long(64))],
    ],
    [['65 bytes', cbor(long(65))]],
    { cases: [[204, 'one’s own', 'ann', '/iam/users/ann/display-name', cbor('Änne')]] },
  ),
  setting(
    'password',
    [
      ['4 bytes', cbor('pass')],
      ['64 bytes', cbor(long(64))],
      ['none', cbor(null)],
    ],
    [
      ['an empty one', cbor('')],
      ['3 bytes', cbor('abc')],
      ['65 bytes', cbor(long(65))],
    ],
    { cases: [[403, 'one’s own', 'ann', '/iam/users/ann/password', cbor('pass')]] },
  ),
  setting('role', [['a role', cbor('Standard')]], [['null', cbor(null)]], {
    cases: [
      [404, 'no such role', 'admin', '/iam/users/ann/role', cbor('Emperor')],
      [404, 'a name every object has', 'admin', '/iam/users/ann/role', cbor('toString')],
    ],
  }),
  setting(
    'sct',
    [['a token', cbor('abcdefghijkl')]],
    [
      ['null', cbor(null)],
      ['65 bytes', cbor(long(65))],
    ],
  ),
  setting(
    'oauth-subject',
    [
      ['a subject', cbor('subject')],
      ['none', cbor(null)],
    ],
    [['65 bytes', cbor(long(65))]],
  ),
  setting(
    'fingerprint',
    [
      ['a fingerprint', cbor(key(7))],
      ['none', cbor(null)],
    ],
    [
      ['63 digits', cbor(key(7).slice(1))],
      ['65 digits', cbor(`0${key(7)}`)],
      ['no hex digits', cbor(long(64))],
    ],
    {
      statuses: [409],
      cases: [
        [409, 'another user’s', 'admin', '/iam/users/ann/fingerprint', cbor(key(1))],
        [204, 'one’s own', 'ann', '/iam/users/ann/fingerprint', cbor(key(7))],
      ],
    },
  ),
  setting(
    'push',
    [
      ['token and project', cbor({ Token: 'token', ProjectId: 'project' })],
      ['the longest', cbor({ Token: long(1023), ProjectId: long(255) })],
      ['more than that', cbor({ Token: 'token', ProjectId: 'project', Topic: 'news' })],
    ],
    [
      ['no token', cbor({ ProjectId: 'project' })],
      ['no project', cbor({ Token: 'token' })],
      ['null for a token', cbor({ Token: null, ProjectId: 'project' })],
      ['null', cbor(null)],
      ['a token of 1024 bytes', cbor({ Token: long(1024), ProjectId: 'project' })],
      ['a project id of 256 bytes', cbor({ Token: 'token', ProjectId: long(256) })],
    ],
    { cases: [[204, 'one’s own', 'ann', '/iam/users/ann/push', cbor({ Token: 'token', ProjectId: 'project' })]] },
  ),
  setting(
    'notification-categories',
    [
      ['some', cbor(['CRITICAL'])],
      ['none', cbor([])],
      ['one twice', cbor(['CRITICAL', 'CRITICAL'])],
    ],
    [
      ['null', cbor(null)],
      ['a bare text', cbor('INFO')],
      ['one the device does not have', cbor(['INFO', 'GOSSIP'])],
      ['one that is no text', cbor(['INFO', 1])],
      ['null among them', cbor(['INFO', null])],
    ],
    { cases: [[204, 'one’s own', 'ann', '/iam/users/ann/notification-categories', cbor(['INFO', 'CRITICAL'])]] },
  ),
];
