/** `svc device audit`: its output, and how it ends when the log was altered. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { runProgram } from '../../cli/frame/program.ts';
import { svc } from '../../cli/program.ts';
import type { AuditHead } from '../../device/audit/index.ts';
import { useLogDirectory } from '../device/audit/log-directory.ts';

const logs = useLogDirectory();
let publicKey: string;
let head: AuditHead;

beforeEach(async () => {
  const log = await logs().open();
  await log.append('paired', { Username: 'ann', Mode: 'LocalOpen', Local: true });
  await log.append('device-stopped', { By: { Username: 'zoë' } });
  await log.close();
  ({ publicKey, head } = log);
});

/** Runs `svc device audit` with the words of `line`, on the test's directory. */
async function audit(line: string): Promise<{ code: number; out: string; err: string }> {
  const texts = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      texts[name] += chunk;
      return true;
    }),
  );
  const words = ['device', 'audit', ...line.split(' '), '--data', logs().directory];
  try {
    const code = await runProgram(await svc(words), words);
    return { code, out: texts.stdout, err: texts.stderr };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

/** Changes the text of the only segment. */
function tamper(change: (text: string) => string): void {
  const [name = ''] = readdirSync(join(logs().directory, 'audit'));
  const path = join(logs().directory, 'audit', name);
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}

describe('show', () => {
  it('prints a line per entry', async () => {
    const { code, out, err } = await audit('show');
    expect([code, err]).toEqual([0, '']);
    expect(out.split('\n').slice(1)).toEqual([
      '2026-01-02T03:04:05.000Z #1 paired Username=ann Mode=LocalOpen Local=true',
      '2026-01-02T03:04:05.000Z #2 device-stopped By={"Username":"zoë"}',
      '',
    ]);
  });

  it('prints nothing that controls a terminal', async () => {
    const log = await logs().open();
    await log.append('user-created', { Username: 'a\u009b2Jb\u202ec\u{e0041}' });
    await log.close();
    tamper(
      (text) =>
        `${text}{"Seq":4,"Time":"2026-01-02T03:04:05.000Z","Event":"x","\\u001b]0;y":1,"Prev":"${'0'.repeat(64)}","Sig":"${'0'.repeat(128)}"}\n`,
    );
    const { out, err } = await audit('show --last 2');
    expect(out.split('\n')).toEqual([
      '2026-01-02T03:04:05.000Z #3 user-created Username="a\\u009b2Jb\\u202ec\\udb40\\udc41"',
      '2026-01-02T03:04:05.000Z #4 x "\\u001b]0;y"=1',
      '',
    ]);
    expect(err).toContain('the audit log is broken');
  });

  it('prints entries unchanged with --json, and only the selected ones', async () => {
    const { out } = await audit('show --last 1 --json');
    expect(JSON.parse(out)).toMatchObject({ Seq: 2, Event: 'device-stopped', Sig: expect.any(String) });
    expect(JSON.parse((await audit('show --event paired --json')).out)).toMatchObject({ Seq: 1 });
  });

  it('refuses an unknown event, and knows those of the SDK and of this log', async () => {
    const { code, out, err } = await audit('show --event nonsuch');
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(/^svc: --event nonsuch: no such event; the events are .*paired, .*denied/);
    expect(await audit('show --event denied')).toEqual({ code: 0, out: '', err: '' });
    const log = await logs().open();
    await log.append('door-opened', {});
    await log.close();
    expect((await audit('show --event door-opened')).out).toMatch(/#3 door-opened\n$/);
  });

  it('warns of a broken log', async () => {
    tamper((text) => text.replace('ann', 'eve'));
    const { code, out, err } = await audit('show');
    expect([code, out.includes('Username=eve')]).toEqual([0, true]);
    expect(err).toMatch(/^warning: the audit log is broken: entry 1 .*bad-signature\n$/);
  });
});

describe('verify', () => {
  it('says what is intact, and what it could not check', async () => {
    const { code, out, err } = await audit('verify');
    expect(code).toBe(0);
    expect(out).toContain('3 entries, 0 to 2, of device pr-1.de-1: all unchanged');
    expect(err).toMatch(/compare it.*\n.*--expect/);
    const strict = await audit(`verify --key ${publicKey.toUpperCase()} --expect ${head.seq}:${head.hash} --json`);
    expect([strict.code, strict.err]).toEqual([0, '']);
    expect(JSON.parse(strict.out)).toMatchObject({ ok: true, head, publicKey });
  });

  it.each([
    ['an entry is changed', (text: string) => text.replace('ann', 'eve'), '', /entry 1 \(000000000000\.jsonl:2\).*: bad-signature/],
    ['an entry is missing', (text: string) => text.replace(/.*"paired".*\n/, ''), '', /entry 2 .*missing: missing-entries/],
    ['the end is torn', (text: string) => text.slice(0, -9), '', /entry 2 .*: truncated/],
    ['the key is another', (text: string) => text, ` --key ${'ab'.repeat(32)}`, /entry 0 .*: wrong-key/],
    ['the end is not there', (text: string) => text, ` --expect 7:${'ab'.repeat(32)}`, /entry 7 .*ends with entry 2: truncated/],
  ])('ends with exit code 1 and one line when %s', async (_, change, options, message) => {
    tamper(change);
    const { code, out, err } = await audit(`verify${options}`);
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(message);
    expect(err.trim().split('\n')).toHaveLength(1);
    const json = await audit(`verify${options} --json`);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ ok: false, reason: expect.any(String), message: expect.stringMatching(message) });
  });

  it('uses the key of the directory when none is given: a log with another key is detected', async () => {
    const own = readFileSync(join(logs().directory, 'audit-key.pem'));
    rmSync(join(logs().directory, 'audit-key.pem'));
    expect((await audit('verify')).code).toBe(0);
    rmSync(join(logs().directory, 'audit'), { recursive: true });
    await (await logs().open()).close();
    writeFileSync(join(logs().directory, 'audit-key.pem'), own);
    expect((await audit('verify')).err).toMatch(/wrong-key/);
  });

  it.each(['verify --key abc', 'verify --expect 5', 'show --last 0'])('refuses %s as wrong use', async (line) => {
    const { code, err } = await audit(line);
    expect([code, err.trim().split('\n').length]).toEqual([2, 1]);
  });
});

describe('key and head', () => {
  it('are printed for a person and for a program', async () => {
    expect((await audit('key')).out).toBe(`${publicKey}\n`);
    expect(JSON.parse((await audit('key --json')).out)).toEqual({ publicKey });
    expect((await audit('head')).out).toBe(`${head.seq}:${head.hash}\n`);
    expect(JSON.parse((await audit('head --json')).out)).toEqual(head);
  });

  it('are refused for a broken log', async () => {
    tamper((text) => text.replace('ann', 'eve'));
    expect((await audit('head')).code).toBe(1);
  });

  it.each([
    ['key', 'key'],
    ['head', 'log'],
    ['show', 'log'],
    ['verify', 'log'],
  ])('%s: a directory without a log is reported as such', async (command, what) => {
    rmSync(join(logs().directory, 'audit'), { recursive: true });
    rmSync(join(logs().directory, 'audit-key.pem'));
    const { code, err } = await audit(command);
    expect(code).toBe(1);
    expect(err).toContain(`there is no audit ${what} in`);
  });
});
