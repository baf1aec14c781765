/** A command that cannot write what it prints. */
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, test, vi } from 'vitest';
import { guardOutput } from '../../cli/frame/lost-output.ts';
import { TestProcess } from '../support/process.ts';

const MAIN = join(import.meta.dirname, '../../dist/svc/main.cjs');

function guarded(stays: boolean, carriesFiles = false) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const exit = vi.fn();
  guardOutput({ stdout, stderr, exit } as unknown as NodeJS.Process, { stays, carriesFiles });
  return { stdout, stderr, exit };
}
const failure = (code: string) => Object.assign(new Error(code), { code });

describe('a process whose output fails', () => {
  test('continues without its standard error', () => {
    const { stderr, exit } = guarded(true);
    stderr.emit('error', failure('ENOSPC'));
    stderr.emit('error', failure('EPIPE'));
    expect(exit).not.toHaveBeenCalled();
  });

  test('continues, if it is a service, while the disk behind its standard output is full', () => {
    const { stdout, exit } = guarded(true);
    stdout.emit('error', failure('ENOSPC'));
    expect(exit).not.toHaveBeenCalled();
  });

  test('fails with a message if it is no service', () => {
    const { stdout, stderr, exit } = guarded(false);
    stdout.emit('error', failure('ENOSPC'));
    expect(exit.mock.calls).toEqual([[1]]);
    expect(String(stderr.read())).toBe('svc: cannot write to standard output: ENOSPC\n');
  });

  test('continues, if it is a service, without a reader of its standard output', () => {
    const { stdout, exit } = guarded(true);
    stdout.emit('error', failure('EPIPE'));
    expect(exit).not.toHaveBeenCalled();
  });

  test('ends without a reader of its standard output if it is no service', () => {
    const { stdout, exit } = guarded(false);
    stdout.emit('error', failure('EPIPE'));
    expect(exit.mock.calls).toEqual([[0]]);
  });

  test('fails when the rest of a file has no reader', () => {
    const { stdout, exit } = guarded(false, true);
    stdout.emit('error', failure('EPIPE'));
    expect(exit.mock.calls).toEqual([[1]]);
  });
});

test.skipIf(process.platform !== 'linux')('a full disk behind standard output is one line', { tags: ['slow'] }, async () => {
  const { code, stderr } = await new TestProcess('sh', ['-c', 'exec "$0" "$1" --version > /dev/full', process.execPath, MAIN]).ended;
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^svc: cannot write to standard output: ENOSPC.*\n$/)]);
});
