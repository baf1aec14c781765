/**
 * The audit log on the disk: it begins, continues, rotates, survives a torn end and a full disk, and strangers cannot
 * fill it.
 */
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { AUDIT_KEY_FILE, verifyAuditLog } from '../../../device/audit/index.ts';
import { PER_DAY, PER_MINUTE } from '../../../device/audit/limiter.ts';
import { createAuditKey } from '../../../device/audit/signing.ts';
import type { Log } from '../../../platform/environment.ts';
import { Random } from '../../../testing/random.ts';
import { codeOf } from '../../support/code-of.ts';
import { TestProcess } from '../../support/process.ts';
import { identity } from './chain.ts';
import { useLogDirectory } from './log-directory.ts';

const logs = useLogDirectory();
const file = (name: string) => join(logs().directory, 'audit', name);
const newest = () => file(logs().segments().at(-1)!);
const verify = () => verifyAuditLog(logs().directory);
const small = { segmentBytes: 32 * 1024, maxBytes: 96 * 1024 };
const stranger = { fingerprint: 'cd'.repeat(32), isLocal: false };
const MINUTE = 60_000;
const DAY = 86_400_000;

describe('a log', () => {
  it('begins with an entry that binds key and device; only this user can read its key', async () => {
    const log = await logs().open();
    const { publicKey } = log;
    await log.close();
    expect(logs().segments()).toEqual(['000000000000.jsonl']);
    expect(logs().events()).toEqual([
      {
        Event: 'log-started',
        Version: 1,
        ProductId: 'pr-1',
        DeviceId: 'de-1',
        DeviceFingerprint: identity.fingerprint,
        AuditKey: publicKey,
      },
    ]);
    for (const path of [join(logs().directory, AUDIT_KEY_FILE), newest()]) expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await verifyAuditLog(logs().directory, { publicKey })).toMatchObject({ ok: true, first: 0, head: log.head });
  });

  it('has an entry on the disk when append resolves, at its time', async () => {
    const log = await logs().open();
    logs().clock.pass(1234);
    await log.append('door-opened', { By: 'ann' });
    expect(logs().events().at(-1)).toEqual({ Event: 'door-opened', By: 'ann' });
    expect(JSON.parse(logs().lines().at(-1)!).Time).toBe('2026-01-02T03:04:06.234Z');
    await log.close();
  });

  it('keeps the order of entries that wait together', async () => {
    const log = await logs().open();
    await Promise.all(Array.from({ length: 500 }, (_, number) => log.append('test', { Number: number })));
    await log.close();
    expect(
      logs()
        .events()
        .slice(1)
        .map(({ Number: number }) => number),
    ).toEqual(Array.from({ length: 500 }, (_, number) => number));
    expect(await verify()).toMatchObject({ ok: true, entries: 501 });
  });

  it('continues after a restart, with the same key', async () => {
    const first = await logs().open();
    await first.append('test');
    await first.close();
    const second = await logs().open();
    expect(second.head).toEqual(first.head);
    expect(second.publicKey).toBe(first.publicKey);
    await second.append('test');
    await second.close();
    expect(await verify()).toMatchObject({ ok: true, head: { seq: 2 } });
  });

  it('records a change of the device’s identity', async () => {
    await (await logs().open()).close();
    const changed = { ...identity, fingerprint: 'ef'.repeat(32) };
    for (let start = 0; start < 2; start++) await (await logs().open({ identity: changed })).close();
    expect(logs().events().slice(1)).toEqual([
      { Event: 'identity-changed', ProductId: 'pr-1', DeviceId: 'de-1', DeviceFingerprint: changed.fingerprint },
    ]);
    expect(await verify()).toMatchObject({ ok: true, fingerprint: changed.fingerprint });
  });

  it('accepts nothing after it is closed, and no event reserved for itself', async () => {
    const log = await logs().open();
    for (const event of ['log-started', 'segment-started', 'identity-changed', 'log-repaired', 'entries-lost', 'suppressed'])
      expect(await codeOf(() => log.append(event))).toBe('INVALID_ARGUMENT');
    await log.close();
    await log.close();
    log.denied(stranger, 'X');
    expect(await codeOf(() => log.append('test'))).toBe('INVALID_STATE');
    expect(logs().lines()).toHaveLength(1);
  });

  it.each([{ segmentBytes: 1000 }, { segmentBytes: 32 * 1024, maxBytes: 40_000 }, { segmentBytes: Number.NaN }])(
    'has room for entries and for two segments: %j is refused',
    async (options) => expect(await codeOf(() => logs().open(options))).toBe('INVALID_ARGUMENT'),
  );
});

describe('rotation', () => {
  async function fill(entries: number, from = 0) {
    const log = await logs().open(small);
    const numbers = Array.from({ length: entries }, (_, index) => from + index);
    await Promise.all(numbers.map((number) => log.append('test', { Number: number, Text: 'x'.repeat(100) })));
    await log.close();
    return log;
  }

  it('begins segments that bind again, and the chain continues across them', async () => {
    await fill(150);
    expect(logs().segments().length).toBeGreaterThan(1);
    expect(
      logs()
        .events()
        .filter(({ Event }) => Event === 'segment-started')[0],
    ).toMatchObject({ FirstKept: 0, AuditKey: expect.any(String) });
    expect(await verify()).toMatchObject({ ok: true, first: 0 });
    for (const name of logs().segments())
      expect(Number.parseInt(name, 10)).toBe(JSON.parse(readFileSync(file(name), 'utf8').split('\n')[0]!).Seq);
  });

  it('removes the oldest segments whole, and what is left can be verified', { tags: ['slow'] }, async () => {
    const { publicKey, head } = await fill(600);
    const total = logs()
      .segments()
      .reduce((sum, name) => sum + statSync(file(name)).size, 0);
    expect(total).toBeLessThanOrEqual(small.maxBytes);
    for (const name of logs().segments()) expect(statSync(file(name)).size).toBeLessThanOrEqual(small.segmentBytes);
    const verdict = await verifyAuditLog(logs().directory, { publicKey, expect: head });
    expect(verdict).toMatchObject({ ok: true, head });
    expect(verdict.ok && verdict.first).toBeGreaterThan(100);
    await fill(100, 600);
    expect(await verify()).toMatchObject({ ok: true });
  });

  it('does not hide a segment that was removed from outside', async () => {
    await fill(150);
    const [first, second] = logs().segments();
    const kept = readFileSync(file(first!));
    rmSync(file(first!));
    expect(await verify()).toMatchObject({ ok: false, reason: 'missing-entries', seq: Number.parseInt(second!, 10), line: 1 });
    writeFileSync(file(first!), kept);
    await fill(100, 150);
    rmSync(file(logs().segments()[1]!));
    expect(await verify()).toMatchObject({ ok: false, reason: 'missing-entries' });
  });

  it('that a crash interrupted before the oldest segment was deleted is finished at the next start', { tags: ['slow'] }, async () => {
    await fill(150);
    const oldest = logs().segments()[0]!;
    const copy = join(logs().directory, 'copy');
    copyFileSync(file(oldest), copy);
    await fill(200, 150);
    expect(logs().segments()).not.toContain(oldest);
    // A log has no gap only if all its removed segments are present again: older ones were removed before.
    const gone = logs().segments()[0]!;
    expect(Number.parseInt(gone, 10)).toBeGreaterThan(0);
    copyFileSync(copy, file(oldest));
    await (await logs().open(small)).close();
    expect(logs().segments()).not.toContain(oldest);
    expect(await verify()).toMatchObject({ ok: true });
  });

  it('allows a check against a remembered hash, also that of the last removed entry', { tags: ['slow'] }, async () => {
    await fill(600);
    const [line] = logs().lines();
    const { Seq, Prev } = JSON.parse(line!);
    expect(await verifyAuditLog(logs().directory, { expect: { seq: Seq - 1, hash: Prev } })).toMatchObject({ ok: true });
    expect(await verifyAuditLog(logs().directory, { expect: { seq: Seq - 1, hash: '00'.repeat(32) } })).toMatchObject({
      reason: 'other-history',
    });
    expect(await verifyAuditLog(logs().directory, { expect: { seq: 3, hash: Prev } })).toMatchObject({
      ok: false,
      reason: 'missing-entries',
    });
  });
});

describe('a torn end', () => {
  async function threeEntries() {
    const log = await logs().open();
    await log.append('test', { Number: 1 });
    await log.append('test', { Number: 2 });
    await log.close();
    return readFileSync(newest());
  }

  it('is removed at the next start, which logs it, wherever the tear is', { tags: ['slow'] }, async () => {
    const whole = await threeEntries();
    const last = whole.lastIndexOf(10, whole.length - 2) + 1;
    for (let size = last + 1; size < whole.length; size += 83) {
      writeFileSync(newest(), whole.subarray(0, size));
      expect(await verify()).toMatchObject({ ok: false, reason: 'truncated', seq: 2 });
      await (await logs().open()).close();
      expect(logs().events().slice(1)).toEqual([
        { Event: 'test', Number: 1 },
        { Event: 'log-repaired', Bytes: size - last, Sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
      ]);
      expect(await verify()).toMatchObject({ ok: true, head: { seq: 2 } });
      writeFileSync(newest(), whole);
    }
  });

  it('of zeros, as some file systems leave it, is removed, too', async () => {
    await threeEntries();
    appendFileSync(newest(), `{"Seq":3${'\0'.repeat(500)}\nrest`);
    await (await logs().open()).close();
    expect(logs().events().at(-1)).toMatchObject({ Event: 'log-repaired', Bytes: 513 });
    expect(await verify()).toMatchObject({ ok: true, head: { seq: 3 } });
  });

  it.each([0, 40])('of a segment that has only begun (%i bytes) leaves the previous one as the newest', async (size) => {
    const log = await logs().open(small);
    await Promise.all(Array.from({ length: 90 }, () => log.append('test', { Text: 'x'.repeat(128) })));
    await log.close();
    expect(logs().segments()).toHaveLength(2);
    const begun = newest();
    truncateSync(begun, size);
    const again = await logs().open(small);
    expect(logs().segments().includes(begun)).toBe(false);
    await Promise.all(Array.from({ length: 100 }, () => again.append('test', { Text: 'x'.repeat(128) })));
    await again.close();
    expect(
      logs()
        .events()
        .filter(({ Event }) => Event === 'log-repaired'),
    ).toHaveLength(size === 0 ? 0 : 1);
    expect(await verify()).toMatchObject({ ok: true, first: 0 });
  });

  it('of the very first entry begins the log again', async () => {
    await (await logs().open()).close();
    truncateSync(newest(), 20);
    await (await logs().open()).close();
    expect(
      logs()
        .events()
        .map(({ Event }) => Event),
    ).toEqual(['log-started', 'log-repaired']);
    expect(await verify()).toMatchObject({ ok: true });
  });

  it('that no crash can cause is refused: more than one write is torn', async () => {
    await threeEntries();
    appendFileSync(newest(), 'x'.repeat(70_000));
    const before = readFileSync(newest());
    expect(await codeOf(() => logs().open())).toBe('PARSE');
    expect(readFileSync(newest()).equals(before)).toBe(true);
  });
});

describe('a start is refused, and nothing is changed,', () => {
  async function refused(code: string, message: RegExp) {
    const before = logs().lines();
    await expect(logs().open()).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(logs().lines()).toEqual(before);
  }

  it('when an entry of the newest segment was changed', async () => {
    const log = await logs().open();
    for (const name of ['ann', 'bob']) await log.append('paired', { Username: name });
    await log.close();
    const text = readFileSync(newest(), 'utf8');
    writeFileSync(newest(), text.replace('ann', 'eve'));
    await refused('PARSE', /000000000000\.jsonl is broken \(entry 2 in line 3: bad-hash\).*left as it is/);
    writeFileSync(newest(), text.replace('bob', 'eve'));
    await refused('PARSE', /entry 2 in line 3: bad-signature/);
  });

  it('when the key is missing, damaged or another one', async () => {
    await (await logs().open()).close();
    const path = join(logs().directory, AUDIT_KEY_FILE);
    writeFileSync(path, createAuditKey());
    await refused('PARSE', /entry 0 in line 1: wrong-key/);
    writeFileSync(path, 'no key');
    await refused('PARSE', /audit-key\.pem: .*not an Ed25519/);
    rmSync(path);
    await refused('NOT_FOUND', /audit-key\.pem is missing/);
  });
});

describe('a write that fails', () => {
  function logged() {
    const errors: unknown[] = [];
    const silent = () => {};
    const log: Log = { error: (_message, fields) => errors.push(fields), warn: silent, info: silent, debug: silent, trace: silent };
    return { errors, log };
  }

  it('is reported to the waiting caller and logged, and the next entry counts it', async () => {
    const { errors, log } = logged();
    const audit = await logs().open({ log });
    const content = readFileSync(newest());
    // Another writer adds to the file: to continue would fork the chain.
    appendFileSync(newest(), 'x');
    expect(await Promise.all([1, 2].map(() => codeOf(() => audit.append('test'))))).toEqual(['INVALID_STATE', 'INVALID_STATE']);
    expect(errors).not.toEqual([]);
    writeFileSync(newest(), content);
    await audit.append('test');
    await audit.close();
    expect(logs().events().slice(1)).toEqual([{ Event: 'entries-lost', Count: 2 }, { Event: 'test' }]);
    expect(await verify()).toMatchObject({ ok: true });
  });

  it('because the log was moved away is not a silent success', async () => {
    const audit = await logs().open();
    rmSync(join(logs().directory, 'audit'), { recursive: true });
    expect(await codeOf(() => audit.append('test'))).toBe('INVALID_STATE');
    mkdirSync(join(logs().directory, 'audit'));
    await audit.close();
  });
});

describe('refusals', () => {
  it('are written within a second, with author and action, and no more often than allowed', async () => {
    const log = await logs().open();
    log.denied({ ...stranger, isLocal: true }, 'TcpTunnel:Connect', { 'TcpTunnel:ServiceId': 'web' });
    log.passwordFailed({ ...stranger, username: 'ann' }, { username: 'boss', reason: 'wrong' });
    expect(logs().lines()).toHaveLength(1);
    logs().clock.pass(1000);
    await log.flush();
    expect(logs().events().slice(1)).toEqual([
      {
        Event: 'denied',
        Action: 'TcpTunnel:Connect',
        Attributes: { 'TcpTunnel:ServiceId': 'web' },
        By: { Fingerprint: stranger.fingerprint, Local: true },
      },
      {
        Event: 'password-failed',
        Username: 'boss',
        Reason: 'wrong',
        By: { Username: 'ann', Fingerprint: stranger.fingerprint, Local: false },
      },
    ]);
    await log.close();
  });

  it('are written before a later entry that is waited for', async () => {
    const log = await logs().open();
    log.denied(stranger, 'X');
    await log.append('test');
    await log.close();
    expect(
      logs()
        .events()
        .map(({ Event }) => Event),
    ).toEqual(['log-started', 'denied', 'test']);
  });

  it('of strangers cost users no entries, nor those of remote strangers local ones', async () => {
    const log = await logs().open();
    for (let number = 0; number < 100; number++) log.denied(stranger, 'X');
    log.denied({ ...stranger, isLocal: true }, 'near');
    log.denied({ ...stranger, username: 'ann' }, 'user');
    log.passwordFailed(stranger, { reason: 'throttled' });
    await log.flush();
    const events = logs().events().slice(1);
    expect(events.filter(({ Action }) => Action === 'X')).toHaveLength(PER_MINUTE);
    expect(events.map(({ Action, Reason }) => Action ?? Reason)).toEqual(expect.arrayContaining(['near', 'user', 'throttled']));
    await log.close();
    expect(logs().events().at(-1)).toEqual({ Event: 'suppressed', Of: 'denied', Class: 'remote', Count: 80 });
  });

  it('by the hundred thousand leave a bounded number of entries, count every refusal, and fit a month', { tags: ['slow'] }, async () => {
    const log = await logs().open();
    const random = new Random('refusals');
    let asked = 0;
    for (let hour = 0; hour < 48; hour++) {
      for (let burst = 0; burst < 20; burst++) {
        for (let number = Math.floor(random.fraction() * 200); number >= 0; number--, asked++) log.denied(stranger, 'X');
        logs().clock.pass(3 * MINUTE);
      }
      await log.flush();
    }
    await log.close();
    const events = logs().events().slice(1);
    const [denied, suppressed] = ['denied', 'suppressed'].map((name) => events.filter(({ Event }) => Event === name));
    expect(denied!.length).toBeGreaterThan(PER_DAY);
    expect(denied!.length).toBeLessThanOrEqual(3 * PER_DAY);
    expect(suppressed!.length).toBeLessThanOrEqual(49);
    expect(denied!.length + suppressed!.reduce((sum, { Count }) => sum + Number(Count), 0)).toBe(asked);
    const bytesPerDay = statSync(newest()).size / 2;
    expect(bytesPerDay * 6 * 10).toBeLessThan(16 * 1024 * 1024);
    expect(await verify()).toMatchObject({ ok: true });
  });

  it('that were only counted are reported after an hour, even if no more occur', async () => {
    const log = await logs().open();
    for (let number = 0; number <= PER_MINUTE; number++) log.denied(stranger, 'X');
    logs().clock.pass(60 * MINUTE);
    logs().clock.pass(1000);
    await log.flush();
    expect(logs().events().at(-1)).toEqual({ Event: 'suppressed', Of: 'denied', Class: 'remote', Count: 1 });
    logs().clock.pass(DAY);
    await log.close();
    expect(logs().lines()).toHaveLength(PER_MINUTE + 2);
  });
});

describe('verifying', () => {
  it('accepts the device’s directory, the segments’ directory, or their files', async () => {
    await (await logs().open()).close();
    for (const target of [logs().directory, join(logs().directory, 'audit'), [newest()]]) {
      expect(await verifyAuditLog(target)).toMatchObject({ ok: true });
    }
  });

  it('reports an error where there is no log', async () => {
    expect(await codeOf(() => verifyAuditLog(logs().directory))).toBe('NOT_FOUND');
    expect(await codeOf(() => verifyAuditLog([join(logs().directory, 'nothing')]))).toBe('NOT_FOUND');
  });

  it('refuses a FIFO in the place of a segment at once', async () => {
    mkdirSync(join(logs().directory, 'audit'), { recursive: true });
    await new TestProcess('mkfifo', [file('000000000000.jsonl')]).succeeded();
    await expect(verify()).rejects.toThrow('000000000000.jsonl is not a file');
  });

  it('finds a log intact while a device writes it', { tags: ['slow'] }, async () => {
    const log = await logs().open(small);
    let writing = true;
    const writer = (async () => {
      for (let number = 0; number < 120; number++) await log.append('test', { Text: 'x'.repeat(128) });
      writing = false;
    })();
    while (writing) expect(await verify()).toMatchObject({ ok: true });
    await writer;
    await log.close();
  });
});
