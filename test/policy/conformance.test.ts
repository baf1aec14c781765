/** `npm run conformance` as a test: nothing required is missing, and nothing counts as done by a mere claim. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { checkConformance, checkRows, missingRows } from '../conformance/check.ts';
import { type DoneEntry, listRows, type OtherEntry, readLists } from '../conformance/list.ts';
import { mentions, testTexts } from '../conformance/mentions.ts';
import { Surfaces } from '../conformance/surface.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const NAME = 'c-device: Limits: svc_device_limit_streams';

const { specification, entries } = readLists(root);
const own = entries.find(({ names }) => names.includes(NAME)) as DoneEntry;

/** Row of `NAME` after this change of its entry. */
async function broken(change: Partial<DoneEntry>) {
  return standing({ ...own, ...change });
}

/** Row of `NAME`, or of another name, with these entries for it. */
async function standing(...changed: readonly (DoneEntry | OtherEntry)[]) {
  const rest = entries.filter((each) => each !== own);
  const names = ['svc_device_limit_streams', 'svc_device_limit_connections'];
  const rows = listRows(specification, [...rest, ...changed]).filter(({ surface, name }) => surface === 'c-device' && names.includes(name));
  const checked = await checkRows(root, rows);
  return { row: checked[0], missing: missingRows(checked).length };
}

describe('the lists', () => {
  test('list everything that is missing', { tags: ['slow'] }, async () => {
    const rows = await checkConformance(root);
    expect(missingRows(rows).map(({ name, reason }) => `${name}: ${reason}`)).toEqual([]);
    expect(rows.length).toBeGreaterThan(560);
  });

  test.each([
    ['4.2', 'device-coap', 'endpoint', 21],
    ['8', 'device', 'limit', 5],
    ['6', 'device', 'device event', 9],
    ['6', 'device', 'connection event', 3],
    ['7', 'device', 'error code', 18],
    ['7', 'c-client', 'error code', 34],
  ])('have §%s %s, %s: %i names', (section, surface, group, count) => {
    const names = specification.flatMap((each) =>
      each.section === section && each.surface === surface && each.group === group ? each.names : [],
    );
    expect(new Set(names).size).toBe(count);
  });

  test('name nothing twice, and nothing outside of the specification', () => {
    expect(() => listRows(specification, [own, own])).toThrow(NAME);
    expect(() => listRows(specification, [{ ...own, names: ['c-device: Limits: svc_device_limit_everything'] }])).toThrow(
      'limit_everything',
    );
  });
});

describe('a row counts as missing', () => {
  test('not when its entry is correct', { tags: ['slow'] }, async () => {
    expect(await broken({})).toMatchObject({ row: { state: 'done', symbol: 'device:Device.limitStreams' }, missing: 0 });
  });

  test.each<[string, Partial<DoneEntry>, RegExp]>([
    ['without an implementation', { names: [] }, /nothing is named/],
    ['with a method that does not exist', { symbol: 'device:Device.limitEverything' }, /no Device.limitEverything in device/],
    ['with a private one', { symbol: 'device:Device.apply' }, /no Device.apply/],
    ['with a method of every object', { symbol: 'device:Device.toString' }, /no Device.toString/],
    ['with an export that does not exist', { symbol: 'device:Gadget' }, /no Gadget in device/],
    ['with a module that does not exist', { symbol: 'gadget:Gadget' }, /no module gadget/],
    ['with a member that its type does not have', { symbol: 'device:DeviceEvent.EXPLODED' }, /no DeviceEvent.EXPLODED/],
    [
      'with an endpoint that its table does not have',
      { symbol: 'device/iam/endpoints/index:iamEndpoints[PUT /iam/me]' },
      /no endpoint PUT \/iam\/me/,
    ],
    ['with something that is not a symbol', { symbol: 'the limit' }, /not a symbol/],
    ['with a test file that does not exist', { test: 'test/device/gadget.test.ts > works' }, /no test file/],
    ['with a file that is not a test', { test: 'test/client/gateway-tool.ts > works' }, /no test file/],
    ['with a test that does not exist', { test: 'test/device/limits.test.ts > works' }, /no test "works"/],
    [
      'with a test that does not use it',
      { test: 'test/device/settings.test.ts > only one authorization listener' },
      /does not use limitStreams/,
    ],
    ['when its kind passes through operations and it names none', { kind: 'option' }, /nothing says where the option passes/],
    [
      'when it passes through an operation that does not exist',
      { kind: 'option', where: ['device:Device.limitEverything'] },
      /no Device.limitEverything/,
    ],
    ['when it is a type without a type test', { kind: 'type' }, /says nothing about types/],
  ])('%s', async (_, change, reason) => {
    expect(await broken(change)).toMatchObject({ row: { state: 'missing', reason: expect.stringMatching(reason) }, missing: 1 });
  });

  test('when its test is of another surface', async () => {
    const group = { section: '7', surface: 'android', group: 'error code', kind: 'error', names: ['PARSE'] } as const;
    const test = 'test/platform/node/files.test.ts > reports where a file is not JSON: %j';
    const entry = { symbol: 'protocol/errors/index:catalogue.PARSE', test, names: ['*: error code: PARSE'] };
    expect(await checkRows(root, listRows([group], [entry]))).toMatchObject([
      { state: 'missing', reason: 'the test does not go through the surface android' },
    ]);
  });

  test('when a row of its surface claims the symbol, too', async () => {
    const limit = 'device:Device.limitConnections';
    const { row, missing } = await standing({ ...own, symbol: limit, test: 'test/device/limits.test.ts > no such test' });
    expect([row?.state, missing]).toEqual(['missing', 2]);
  });
});

describe('a row that is not done', () => {
  const other = (state: OtherEntry['state'], more: Partial<OtherEntry> = {}): OtherEntry => ({
    state,
    reason: 'of this test',
    names: own.names.filter((name) => name === NAME),
    ...more,
  });

  test('is a known gap or not applicable, with its reason', async () => {
    expect(await standing(other('missing'))).toMatchObject({ row: { state: 'missing', known: true, reason: 'of this test' }, missing: 0 });
    expect(await standing(other('not applicable'))).toMatchObject({ row: { state: 'not applicable' }, missing: 0 });
    expect(await standing(other('not applicable', { reason: ' ' }))).toMatchObject({ row: { state: 'missing' }, missing: 1 });
  });

  describe('is an alias', () => {
    const symbol = 'device:Device.limitConnections';
    const shown = 'test/device/limits.test.ts > connections: raised and lowered, and a connection above the limit gets the reason';
    test.each<[string, Partial<OtherEntry>, string | null]>([
      ['with a test of its own', { symbol, test: shown }, null],
      [
        'of something done on its surface',
        { symbol: 'device:Device.limitAll', test: shown },
        'device:Device.limitAll is not done on this surface',
      ],
      ['not without a test', { symbol }, 'no test shows what it stands for'],
      [
        'not with a test that does not use its symbol',
        { symbol, test: 'test/device/settings.test.ts > only one authorization listener' },
        'the test does not use limitConnections',
      ],
    ])('%s', async (_, more, reason) => {
      const row = reason === null ? { state: 'alias' } : { state: 'missing', reason };
      expect(await standing(other('alias', more))).toMatchObject({ row, missing: reason === null ? 0 : 1 });
    });

    test.each<[string, string, string, string | null]>([
      ['without a test where its operation returns a promise', 'connectAsync', 'client:Connection.connect', null],
      ['not of another operation', 'connectAsync', 'client:Connection.openStream', 'no test shows what it stands for'],
      [
        'not where its operation returns no promise',
        'createStreamAsync',
        'client:Connection.openStream',
        'client:Connection.openStream returns no promise',
      ],
    ])('%s', async (_, name, target, reason) => {
      const group = { section: '4.3', surface: 'ios', group: 'Connection', kind: 'operation' } as const;
      const names = ['connect', 'createStream'];
      const alias = { state: 'alias', symbol: target, reason: 'of this test', names: [`ios: Connection: ${name}`] } as const;
      const done = entries.filter((entry) => names.some((each) => entry.names.includes(`ios: Connection: ${each}`)));
      const own = done.map((entry) => ({ ...entry, names: entry.names.filter((each) => each.startsWith('ios')) }));
      const rows = await checkRows(root, listRows([{ ...group, names: [...names, name] }], [...own, alias]));
      expect(rows.at(-1)).toMatchObject(reason === null ? { state: 'alias' } : { state: 'missing', reason });
    });
  });
});

test.each([
  ["import { SvcClient } from '../client/node.ts';", true],
  ["import {\n  type Connection,\n  SvcClient,\n} from '../client/node.ts';", true],
  ["const { SvcClient } = await import('../client/node.ts');", true],
  ["import { client } from './fixture.ts';", true],
  ["import type { SvcClient } from '../client/node.ts';", false],
  ["import { type Connection, type SvcClient } from '../client/node.ts';", false],
  ["import type { Client } from './fixture.ts';", false],
  ["/* import { SvcClient } from '../client/node.ts'; */", false],
  ["import { Connection } from '../client/connection.ts';", false],
])('%j: reaches the surface of clients: %s', (text, reaches) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-conformance-'));
  try {
    mkdirSync(join(folder, 'test'));
    writeFileSync(join(folder, 'test/fixture.ts'), "import { SvcClient } from '../client/node.ts';\n");
    writeFileSync(join(folder, 'test/some.test.ts'), text);
    expect(new Surfaces(folder).has('android', 'test/some.test.ts')).toBe(reaches);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

describe('the text of a test', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-conformance-'));
  const file = join(folder, 'some.test.ts');
  writeFileSync(join(folder, 'tables.ts'), "export const cases = [\n  ['GET /a', 1],\n];\nexport const unused = ['GET /b'];\n");
  writeFileSync(
    file,
    `import { cases } from './tables.ts';
const helper = () => {
  device.called();
};
beforeEach(() => {
  device.prepared();
});
test('one', () => {
  helper(); // device.commented()
});
test.skip('skipped', () => {
  device.skipped();
});
describe.each(cases)('%s', (endpoint) => {
  it('two', () => {
    request(endpoint);
  });
});
test('three', () => device.short());
test('four', () => {
  device.other();
});
`,
  );
  afterAll(() => rmSync(folder, { recursive: true }));
  const uses = (title: string, member: string) => testTexts(file, title).some((text) => mentions(text, { member, use: 'method' }));

  test('includes what it calls, its helpers and its hooks, and excludes comments and neighbours', () => {
    expect(['called', 'prepared', 'commented', 'short', 'other'].filter((member) => uses('one', member))).toEqual(['called', 'prepared']);
    expect(['called', 'short', 'other'].filter((member) => uses('three', member))).toEqual(['short']);
  });

  test('includes the tables around it, those of other files too', () => {
    const [text = ''] = testTexts(file, 'two');
    expect(mentions(text, { member: 'GET /{name}', use: 'endpoint' })).toBe(true);
    expect(mentions(text, { member: 'GET /b', use: 'endpoint' })).toBe(false);
    expect(mentions(text, { member: 'PUT /{name}', use: 'endpoint' })).toBe(false);
  });

  test('is empty when the test is skipped or does not exist', () => {
    expect([testTexts(file, 'skipped'), testTexts(file, 'five')]).toEqual([[], []]);
  });
});
