/**
 * kill -9 in the middle of writing: no acknowledged entry is lost, the log stays sound, and the next start continues
 * it.
 * @module-tag slow
 */
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { verifyAuditLog } from '../../../device/audit/index.ts';
import { Random } from '../../../testing/random.ts';
import { TestProcess } from '../../support/process.ts';
import { useLogDirectory } from './log-directory.ts';

const logs = useLogDirectory();

it('a process that is killed while it writes loses no acknowledged entry', async () => {
  const random = new Random(`audit-kill-${process.env.SVC_TEST_SEED ?? 1}`);
  let last = 0;
  for (let kill = 0; kill < 8; kill++) {
    last = await writeUntilKilled(last + 1, last + 20 + Math.floor(random.fraction() * 120));
    await (await logs().open({ segmentBytes: 32 * 1024, maxBytes: 128 * 1024 })).close();
    const verdict = await verifyAuditLog(logs().directory);
    expect(verdict, JSON.stringify(verdict)).toMatchObject({ ok: true });
    const numbers = logs()
      .events()
      .flatMap(({ Number: number }) => (typeof number === 'number' ? [number] : []));
    expect(numbers).toContain(last);
    // Later entries were unacknowledged. Each number in the kept segments occurs once.
    const kept = numbers.filter((number) => number > numbers[0]!);
    expect(new Set(kept).size).toBe(kept.length);
    for (let number = numbers[0]!; number <= last; number++) expect(numbers, `entry ${number} was acknowledged`).toContain(number);
    last = Math.max(...numbers);
  }
});

/**
 * Starts a process at the entry `first`, kills it when it has acknowledged another one, and returns the last
 * acknowledged number.
 */
async function writeUntilKilled(first: number, killAt: number): Promise<number> {
  const script = fileURLToPath(new URL('writing-child.mjs', import.meta.url));
  const child = new TestProcess(process.execPath, [script, logs().directory, String(first)]);
  let last = first - 1;
  for await (const line of child.eachLine()) {
    expect(Number(line), 'entries are acknowledged in order').toBe(last + 1);
    last = Number(line);
    if (last === killAt) child.kill();
  }
  expect(await child.ended).toMatchObject({ signal: 'SIGKILL' });
  return last;
}
