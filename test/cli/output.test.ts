/** What a command writes to which output. */
import { expect, test } from 'vitest';
import { CommandError, describe } from '../../cli/frame/errors.ts';
import { Output } from '../../cli/frame/output.ts';
import { table } from '../../cli/frame/table.ts';
import { TextStream } from './text-stream.ts';

function shown(write: (output: Output) => void, { json = false, isTTY = false } = {}): string {
  const stdout = new TextStream(isTTY);
  write(new Output(json, { stdout, stderr: stdout }));
  return stdout.text;
}

function written(json: boolean, document: unknown, text: string | readonly string[]): string {
  return shown((output) => output.result(document, text), { json });
}

const NAME = 'Eve\u001b[2K\u001b]0;x\u0007\u202e\u009b1m\r\nrole  Administrator';

test('a name from the other end can neither control the terminal nor begin a line', () => {
  expect(written(false, null, [`display name  ${NAME}`, 'role          Guest'])).toBe(
    'display name  Eve [2K ]0;x   1m  role  Administrator\nrole          Guest\n',
  );
});

test('what a peer said begins no line, in results, notes and warnings', () => {
  const said = 'a\tb\u001b[31m\nwarning: c';
  const line = 'a b [31m warning: c\n';
  expect(written(false, null, said)).toBe(line);
  for (const write of [(output: Output) => output.note(said), (output: Output) => output.note([said])]) expect(shown(write)).toBe(line);
  expect(shown((output) => output.warn(said))).toBe(`warning: ${line}`);
  expect(shown((output) => output.aside(said), { isTTY: true })).toBe(`\r\u001b[K${line}\u001b7`);
});

test('an error is one line without control characters', () => {
  expect(describe(new CommandError('the device answered 4.04: \u001b[2K\n  gone\u0007'))).toBe('the device answered 4.04:  [2K gone');
});

test('letters of all scripts stay, with their joiners, and so do code points without a Unicode character', () => {
  const names = ['Küche 台所 кухня 🔥', 'می\u200cخواهم', '👩\u200d🔧', '\u{1faff}\u0378'];
  expect(written(false, null, names)).toBe(`${names.join('\n')}\n`);
  for (const name of names) expect(describe(new CommandError(name))).toBe(name);
});

test('direction marks and line separators become blanks', () => {
  expect(written(false, null, ['a\u202eb\u2066c\u200fd\u2028e\u2029f'])).toBe('a b c d e f\n');
});

test('JSON is complete, and escaped', () => {
  const line = written(true, { name: 'a\u001b\n' }, 'x');
  expect(line).toBe('{"name":"a\\u001b\\n"}\n');
});

test('a payload is unchanged in a pipe, and harmless at a terminal', () => {
  const payload = 'a\u001b[2K\tb\r\nc';
  expect(shown((output) => output.payload(payload))).toBe(`${payload}\n`);
  expect(shown((output) => output.payload(payload), { isTTY: true })).toBe('a [2K\tb \nc\n');
});

test('a note is for people, a warning for all', () => {
  expect(shown((output) => output.note('connected'))).toBe('connected\n');
  expect(shown((output) => output.note('connected'), { json: true })).toBe('');
  expect(shown((output) => output.warn('careful'), { json: true })).toBe('warning: careful\n');
});

test('a very long cell of a table makes only its own row long', () => {
  const rows = [['x'.repeat(1_000_000), 'end'], ...Array.from({ length: 1000 }, () => ['a', 'end'])];
  const lines = table(['path', 'title'], rows);
  expect(lines.reduce((sum, line) => sum + line.length, 0)).toBeLessThan(1_400_000);
  expect(lines[2]).toBe(`a${' '.repeat(257)}end`);
});
