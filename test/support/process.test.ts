/** The errors of a process. */
import { beforeEach, describe, expect, test } from 'vitest';
import { processReports, TestProcess } from './process.ts';
import { addReports, type Result } from './process-reports.ts';

const node = (script: string, ...args: string[]): TestProcess => new TestProcess(process.execPath, ['-e', script, '--', ...args]);
const messageOf = (work: Promise<unknown>): Promise<string> => work.then(String, (error: Error) => error.message);

describe('a process that ends with 1', () => {
  let ended: TestProcess;
  beforeEach(async () => {
    ended = node("console.log('one\\ntwo'); console.error('it is broken'); process.exitCode = 1");
    await ended.ended;
  });

  test('rejects a wait for success with its command line, its exit code and both outputs', { tags: ['slow'] }, async () => {
    const message = await messageOf(ended.succeeded());
    expect(message).toMatch(/^the process failed\n\$ \S+ -e console\.log.* --\nended with 1\nstdout: one\ntwo\nstderr: it is broken$/);
  });

  test('rejects a wait for a line it never wrote, and returns one that it wrote', { tags: ['slow'] }, async () => {
    expect(await ended.line((line) => line === 'two')).toBe('two');
    expect(await messageOf(ended.line((line) => line === 'three'))).toMatch(/ended with 1\nstdout: one\ntwo\nstderr: it is broken$/);
  });

  test('is reported in the error of any assertion, once, followed by the stack', { tags: ['slow'] }, () => {
    const error = { message: 'expected 1 to be 2', stack: 'Error: expected 1 to be 2\n    at test.ts:1' };
    const result: Result = { errors: [error] };
    addReports(result);
    addReports(result);
    expect(error.message).toBe(`expected 1 to be 2\n\n${ended.report()}`);
    expect(error.stack).toBe(`Error: ${error.message}\n    at test.ts:1`);
  });
});

test('a process that still runs is reported in the error of a timeout, and the signal that ends it afterwards', {
  tags: ['slow'],
}, async () => {
  const running = node("console.log('up'); setInterval(() => {}, 1000)");
  await running.line();
  const error = { message: 'Test timed out' };
  addReports({ errors: [error] });
  expect(error.message).toContain(`still runs as ${running.pid}\nstdout: up`);
  await running.end('SIGKILL');
  expect(running.report()).toContain('ended by SIGKILL from the test');
});

test('a command that does not exist is reported by its name', async () => {
  expect(await messageOf(new TestProcess('/nonexistent/command', []).succeeded())).toMatch(/\$ \/nonexistent\/command\nended with -?\d+/);
});

test('a report is bounded, and keeps the end of the output', { tags: ['slow'] }, async () => {
  const loud = node("process.stdout.write('x'.repeat(100_000) + 'the last word')", 'y'.repeat(10_000));
  await loud.ended;
  expect(loud.report().length).toBeLessThan(5_000);
  expect(loud.report()).toMatch(/the last word$/);
  for (let i = 0; i < 12; i++) new TestProcess('true', []);
  expect(processReports().length).toBe(8);
});

test('secrets in arguments and output are omitted', { tags: ['slow'] }, async () => {
  const words = ['--sct', 'hidden-1', '--password-file', 'seen', 'p=pr,pwd=hidden-2,sct=hidden-3,fp=ab', 'https://x#pwd=hidden-4&u=ann'];
  const child = node('console.log(JSON.stringify({ secret: "hidden-5", serverKey: "seen" }))', ...words);
  await child.ended;
  expect(child.report()).not.toContain('hidden-');
  expect(child.report().match(/seen/g)?.length).toBeGreaterThan(1);
});
