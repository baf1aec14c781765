/**
 * Tampering with an audit log: whatever is changed, removed, reordered or added, the first wrong entry is found, with
 * the reason.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AuditFile, entriesOf } from '../../../device/audit/chain.ts';
import { type AuditDetails, checkEntry, MAX_LINE, readEntry, sealEntry } from '../../../device/audit/entry.ts';
import { auditHash, auditSigner, auditVerifier, createAuditKey } from '../../../device/audit/signing.ts';
import { type AuditVerdict, type VerifyOptions, verifyEntries } from '../../../device/audit/verify.ts';
import { anyText } from '../../support/text.ts';
import { fileOf, identity, makeChain, START } from './chain.ts';

const pem = createAuditKey();
const drafts = [
  { event: 'device-started', details: { AppName: 'test' } },
  { event: 'paired', details: { Username: 'ann', Mode: 'LocalOpen', Fingerprint: 'cd'.repeat(32), Local: true } },
  { event: 'role-changed', details: { Username: 'ann', From: 'Guest', To: 'Administrator', By: { Username: 'boss', Local: false } } },
  { event: 'denied', details: { Action: 'IAM:DeleteUser', Attributes: { 'IAM:Username': 'zoë "\\\u0000\ud800' } } },
  { event: 'device-stopped', details: {} },
];
const { lines, publicKey, hashes } = makeChain(drafts, pem);

function judge(changed: readonly string[], options: VerifyOptions = { publicKey }): AuditVerdict {
  return verifyEntries([fileOf(changed)], { ...auditHash, ...auditVerifier() }, options);
}

/** Reason and number of the first broken entry; null for a sound log. */
function fault(changed: readonly string[], options?: VerifyOptions): readonly [string, number] | null {
  const verdict = judge(changed, options);
  return verdict.ok ? null : [verdict.reason, verdict.seq];
}

const withLine = (index: number, line: string) => lines.with(index, line);

describe('a log as it was written', () => {
  it('is sound, and names its device and its key', () => {
    expect(judge(lines)).toEqual({
      ok: true,
      entries: 6,
      first: 0,
      head: { seq: 5, hash: hashes[5] },
      publicKey,
      productId: 'pr-1',
      deviceId: 'de-1',
      fingerprint: identity.fingerprint,
    });
    expect(fault(lines, {})).toBeNull();
  });

  it('is one line of canonical JSON per entry', () => {
    expect(lines[2]).toMatch(
      /^\{"Seq":2,"Time":"2026-01-02T03:04:05\.000Z","Event":"paired","Username":"ann",.*"Local":true,"Prev":"[0-9a-f]{64}","Sig":"[0-9a-f]{128}"\}$/,
    );
    for (const line of lines) expect(JSON.stringify(JSON.parse(line))).toBe(line);
  });

  it('is sound over several files, an empty one among them', () => {
    const files: AuditFile[] = [fileOf(lines.slice(0, 2), 'a'), fileOf([], 'b'), fileOf(lines.slice(2), 'c')];
    expect(verifyEntries(files, { ...auditHash, ...auditVerifier() }, { publicKey })).toMatchObject({ ok: true, entries: 6 });
  });
});

describe('a changed member', () => {
  const members = lines.flatMap((line, index) => Object.keys(JSON.parse(line)).map((name) => [index, name] as const));
  it.each(members)('of entry %i is found: %s', (index, name) => {
    const entry = JSON.parse(lines[index]!);
    const value = entry[name];
    entry[name] = typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : otherText(value);
    const expected = name === 'AuditKey' ? 'wrong-key' : 'bad-signature';
    expect(fault(withLine(index, JSON.stringify(entry)))).toEqual([expected, name === 'Seq' ? index + 1 : index]);
  });

  it.each(lines.map((_, index) => index))('is found when it is added to or removed from entry %i', (index) => {
    const { Seq, Time, Event, ...rest } = JSON.parse(lines[index]!);
    expect(fault(withLine(index, JSON.stringify({ Seq, Time, Event, Added: 1, ...rest })))).toEqual(['bad-signature', index]);
    expect(fault(withLine(index, JSON.stringify({ Seq, Event, ...rest })))).toEqual(['malformed', index]);
  });
});

describe('verification finds', () => {
  const all = lines.map((_, index) => index);

  it.each(all)('that line %i is missing', (index) => {
    const expected = index === lines.length - 1 ? null : ['missing-entries', index + 1];
    expect(fault(lines.toSpliced(index, 1))).toEqual(expected);
  });

  it.each(all)('that line %i is there twice', (index) => {
    expect(fault(lines.toSpliced(index, 0, lines[index]!))).toEqual(['duplicated', index]);
    expect(fault([...lines, lines[index]!])).toEqual(['duplicated', index]);
  });

  it.each(all.flatMap((first) => all.filter((second) => second > first).map((second) => [first, second] as const)))(
    'with lines %i and %i swapped',
    (first, second) => {
      expect(fault(lines.with(first, lines[second]!).with(second, lines[first]!))).toEqual(['reordered', second]);
    },
  );

  it('that all lines are missing', () => {
    expect(fault([])).toEqual(['missing-entries', 0]);
  });

  it('a line that is torn, at any byte', () => {
    const { bytes } = fileOf(lines);
    const before = fileOf(lines.slice(0, -1)).bytes.length;
    for (let length = before + 1; length < bytes.length; length += 7) {
      const verdict = verifyEntries([{ name: 'a', bytes: bytes.subarray(0, length) }], { ...auditHash, ...auditVerifier() }, { publicKey });
      expect(verdict).toMatchObject({ ok: false, reason: 'truncated', seq: 5 });
    }
  });

  it.each([
    ['white space', (line: string) => line.replace(',"Time"', ', "Time"')],
    ['another form of a number', (line: string) => line.replace('"Seq":2', '"Seq":2.0')],
    ['another form of a text', (line: string) => line.replace('"ann"', '"\\u0061nn"')],
    ['a member twice', (line: string) => line.replace('"Username":"ann"', '"Username":"ann","Username":"bob"')],
    ['a carriage return', (line: string) => `${line}\r`],
    ['no JSON', () => 'hello'],
    ['nothing', () => ''],
    ['too much', (line: string) => line.replace('ann', 'a'.repeat(MAX_LINE))],
  ])('a line with %s', (_, change) => {
    expect(fault(withLine(2, change(lines[2]!)))).toEqual(['malformed', 2]);
  });

  it('a line that is not UTF-8', () => {
    const { bytes } = fileOf(lines);
    bytes[bytes.indexOf('a'.charCodeAt(0), 400)] = 0xff;
    expect(verifyEntries([{ name: 'a', bytes }], { ...auditHash, ...auditVerifier() }, { publicKey })).toMatchObject({
      reason: 'malformed',
    });
  });
});

describe('a log', () => {
  const other = makeChain(drafts);

  it('signed with another key is refused by a verifier that knows the key, and by no other', () => {
    expect(fault(other.lines)).toEqual(['wrong-key', 0]);
    expect(fault(other.lines, {})).toBeNull();
  });

  it('continued with another key is refused', () => {
    expect(fault([...lines.slice(0, 3), ...other.lines.slice(3)], {})).toEqual(['bad-signature', 3]);
  });

  it('with an entry changed and signed by a stolen key fails at the next hash', () => {
    const crypto = { ...auditSigner(pem), ...auditHash };
    const { Prev } = JSON.parse(lines[3]!);
    const forged = sealEntry({ seq: 2, hash: Prev }, { time: START, event: 'role-changed', details: { Username: 'eve' } }, crypto);
    expect(fault(withLine(3, new TextDecoder().decode(forged.line)))).toEqual(['bad-hash', 4]);
  });

  it('signed again as a whole is refused by a verifier that remembers an entry', () => {
    const again = makeChain([{ event: 'device-started', details: {} }, ...drafts.slice(1)], pem);
    const expect3 = { seq: 3, hash: hashes[3]! };
    expect(fault(again.lines)).toBeNull();
    expect(fault(again.lines, { publicKey, expect: expect3 })).toEqual(['other-history', 3]);
    expect(fault(lines, { publicKey, expect: expect3 })).toBeNull();
  });

  it('cut at the end is refused by a verifier that remembers a lost entry, and by no other', () => {
    const cut = lines.slice(0, 4);
    expect(fault(cut)).toBeNull();
    expect(fault(cut, { publicKey, expect: { seq: 5, hash: hashes[5]! } })).toEqual(['truncated', 5]);
    expect(fault(cut, { publicKey, expect: { seq: 3, hash: hashes[3]! } })).toBeNull();
  });

  it('is refused with an invalid key', () => {
    expect(fault(lines, { publicKey: 'ff'.repeat(32) })).toEqual(['wrong-key', 0]);
    expect(auditVerifier().verify('nonsense', new Uint8Array(1), '00'.repeat(64))).toBe(false);
    expect(auditVerifier().verify(publicKey, new Uint8Array(1), '00')).toBe(false);
  });
});

describe('any log', () => {
  const word = anyText(200);
  const name = fc.stringMatching(/^[A-Z][A-Za-z0-9]{0,10}$/).filter((text) => !['Seq', 'Time', 'Event', 'Prev', 'Sig'].includes(text));
  const scalar = fc.oneof(word, fc.maxSafeInteger(), fc.boolean(), fc.constant(undefined));
  const details = fc.dictionary(name, fc.oneof(scalar, fc.dictionary(word, scalar, { maxKeys: 6 })), { maxKeys: 4 });

  it('is sound as written, and broken by any changed byte', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(fc.array(details, { maxLength: 6 }), fc.nat(), fc.integer({ min: 1, max: 255 }), (all, at, by) => {
        const chain = makeChain(
          all.map((each) => ({ event: 'test', details: checkEntry('test', each as AuditDetails) })),
          pem,
        );
        const { bytes } = fileOf(chain.lines);
        const crypto = { ...auditHash, ...auditVerifier() };
        expect(verifyEntries([{ name: 'a', bytes }], crypto, { publicKey })).toMatchObject({ ok: true, entries: all.length + 1 });
        bytes[at % bytes.length]! ^= by;
        expect(verifyEntries([{ name: 'a', bytes }], crypto, { publicKey }).ok).toBe(false);
      }),
      { numRuns: 60, seed: Number(process.env.SVC_TEST_SEED ?? 1) },
    );
  });

  it('has entries of bounded size, whatever goes into them', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(anyText(5000), fc.dictionary(word, word), (long, attributes) => {
        const kept = checkEntry('denied', { Action: long, Attributes: attributes });
        const [line = ''] = makeChain([{ event: 'denied', details: kept }], pem).lines.slice(1);
        const bytes = new TextEncoder().encode(line);
        expect(bytes.length).toBeLessThan(MAX_LINE);
        expect(readEntry(bytes)).not.toBeNull();
        expect(Array.from(kept.Action as string).length).toBeLessThanOrEqual(128);
        expect(Object.keys(kept.Attributes as object).length).toBeLessThanOrEqual(4);
      }),
      { numRuns: 100, seed: Number(process.env.SVC_TEST_SEED ?? 1) },
    );
  });
});

describe('a file that is no log', () => {
  const MIB = 1024 * 1024;
  const whole = fileOf(lines).bytes;
  const judgeBytes = (...parts: Uint8Array[]) =>
    verifyEntries([{ name: 'a', bytes: Buffer.concat(parts) }], { ...auditHash, ...auditVerifier() }, { publicKey });

  it('is given up at its first line: line feeds, more than memory holds lines', { tags: ['slow'] }, () => {
    expect(judgeBytes(new Uint8Array(64 * MIB).fill(10))).toMatchObject({ reason: 'malformed', seq: 0, line: 1 });
  });

  it('may have line feeds before or behind entries', { tags: ['slow'] }, () => {
    const feeds = new Uint8Array(MIB / 8).fill(10);
    expect(judgeBytes(whole, feeds)).toMatchObject({ reason: 'malformed', seq: 6, line: 7 });
    const late = fileOf(lines.slice(3)).bytes;
    expect(judgeBytes(fileOf(lines.slice(0, 2)).bytes, late, feeds)).toMatchObject({ reason: 'missing-entries', seq: 3, line: 3 });
    expect(entriesOf({ name: 'a', bytes: Buffer.concat([feeds, whole]) })).toHaveLength(6);
  });

  it('may have one endless line, which is not parsed', () => {
    const line = Buffer.alloc(8 * MIB, '{"Seq":1,"Sig":"');
    expect(judgeBytes(whole, line, Buffer.from('\n'))).toMatchObject({ reason: 'malformed', seq: 6, line: 7 });
    expect(judgeBytes(whole, line)).toMatchObject({ reason: 'truncated', seq: 6, line: 7 });
  });
});

describe('an entry', () => {
  const code = (event: string, given: AuditDetails) =>
    expect(() => checkEntry(event, given)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));

  it.each(['', 'Upper', 'with space', 'x'.repeat(33), '1st'])('cannot be named "%s"', (event) => code(event, {}));
  it.each(['Seq', 'Time', 'Event', 'Prev', 'Sig', 'lower', '', '1', 'A-B', '__proto__'])('cannot have a member "%s"', (member) =>
    code('test', Object.fromEntries([[member, 'x']])),
  );
  it.each([1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])('cannot have the number %d', (number) => code('test', { Number: number }));
  it('cannot have more members than fit', () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`M${index}`, 'x'.repeat(128)]));
    code('test', many);
  });
  it('has long texts cut between two characters', () => {
    const kept = checkEntry('test', { Text: '💡'.repeat(200), Short: '💡'.repeat(128) });
    expect(kept).toEqual({ Text: `${'💡'.repeat(127)}…`, Short: '💡'.repeat(128) });
  });
});

function otherText(value: unknown): unknown {
  if (typeof value !== 'string') return {};
  const last = value.at(-1) === '0' ? '1' : '0';
  // A time stays valid: the signature is what must fail.
  return value.endsWith('Z') ? value.replace('2026', '2025') : `${value.slice(0, -1)}${/[0-9a-f]/.test(value.at(-1) ?? '') ? last : 'x'}`;
}
