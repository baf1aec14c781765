/** What a base station records of its start, and whether its certificate authenticates it. */
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { provesHost } from '../../server/rest/certificate-proof.ts';
import { type LastStart, readLastStart, rememberStart } from '../../server/storage/last-start.ts';
import { authority, serverPair } from '../support/certificates.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const start: LastStart = { fingerprint: 'ab'.repeat(32), port: 4433, host: null, url: null, tlsProves: false };
let directory: string;

beforeEach(() => {
  directory = temporaryDirectory();
});

test.each<[string, LastStart]>([
  ['alone', start],
  ['with all', { ...start, host: '192.0.2.1', url: 'https://station.example:4433', tlsProves: true }],
])('a start %s is recorded', async (_, value) => {
  expect(await readLastStart(directory)).toBeUndefined();
  await rememberStart(directory, value);
  expect(await readLastStart(directory)).toEqual(value);
});

test('the same start writes nothing, so it works with a full disk', async () => {
  await rememberStart(directory, start);
  const before = statSync(join(directory, 'station.json'));
  await rememberStart(directory, { ...start });
  expect(statSync(join(directory, 'station.json')).ino).toBe(before.ino);
  await rememberStart(directory, { ...start, port: 1 });
  expect((await readLastStart(directory))?.port).toBe(1);
});

test.each(['{', 'null', '[]', '{"Fingerprint": "x", "Port": 1}', '{"Port": 1}'])('%j is refused with one line', async (text) => {
  writeFileSync(join(directory, 'station.json'), text);
  await expect(readLastStart(directory)).rejects.toMatchObject({
    code: 'PARSE',
    message: expect.stringMatching(/station\.json.*move it away/),
  });
  await rememberStart(directory, start);
  expect(await readLastStart(directory)).toEqual(start);
});

describe('a certificate', () => {
  const names = ['station.example', '192.0.2.1'];

  test('proves its names by a trusted root, with intermediate certificates', async () => {
    const root = await authority('root');
    const between = await authority('between', root);
    const { cert } = await serverPair(between, { names, chain: [between] });
    for (const name of names) expect(provesHost(cert, name, Date.now(), [root.pem])).toBe(true);
    expect(provesHost(cert, 'other.example', Date.now(), [root.pem])).toBe(false);
    expect(provesHost(cert, '192.0.2.2', Date.now(), [root.pem])).toBe(false);
    expect(provesHost(cert, names[0]!, Date.now(), [])).toBe(false);
    expect(provesHost(cert, names[0]!, Date.now())).toBe(false);
    expect(provesHost(cert, names[0]!, Date.now() + 31 * 86_400_000, [root.pem])).toBe(false);
    const { cert: incomplete } = await serverPair(between, { names });
    expect(provesHost(incomplete, names[0]!, Date.now(), [root.pem])).toBe(false);
  });

  test('proves nothing when self-signed or issued by another authority', async () => {
    const { cert } = await serverPair(undefined, { names });
    expect(provesHost(cert, names[0]!, Date.now())).toBe(false);
    const root = await authority('root');
    const foreign = await authority('foreign');
    const { cert: misled } = await serverPair(foreign, { names, chain: [foreign] });
    expect(provesHost(misled, names[0]!, Date.now(), [root.pem])).toBe(false);
    expect(provesHost('', names[0]!, Date.now(), [root.pem])).toBe(false);
  });
});
