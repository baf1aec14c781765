/** Questions at a terminal: a stream stands for the terminal, with its raw mode and what it shows. */
import { PassThrough } from 'node:stream';
import { setImmediate as nextTask } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type AskOptions, ask, askLines } from '../../cli/frame/ask.ts';
import { ExitCode, exitCode } from '../../cli/frame/errors.ts';
import { TextStream } from './text-stream.ts';

class Terminal {
  raw = false;
  readonly input = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (on: boolean) => {
      this.raw = on;
    },
  });
  readonly output = Object.assign(new TextStream(true), { columns: 80 });

  get shown(): string {
    return this.output.text;
  }

  ask(question: string, options: AskOptions = {}): Promise<string> {
    return ask(question, { ...options, input: this.input, output: this.output });
  }

  /** Returns whether the shell gets its terminal back unchanged. */
  get left(): boolean {
    return !this.raw && this.input.listenerCount('keypress') === 0;
  }
}

describe('a question', () => {
  test('is shown with the typed text; the answer is trimmed', async () => {
    const terminal = new Terminal();
    const answer = terminal.ask('Is it the same? (yes/no) ');
    expect([terminal.shown.includes('Is it the same? (yes/no) '), terminal.raw]).toEqual([true, true]);
    terminal.input.write('  yes \r');
    expect(await answer).toBe('yes');
    expect(terminal.shown).toContain('yes');
    expect(terminal.left).toBe(true);
  });

  test('can be followed by another', async () => {
    const terminal = new Terminal();
    for (const text of ['one', 'two']) {
      const answer = terminal.ask('? ');
      terminal.input.write(`${text}\r`);
      expect(await answer).toBe(text);
    }
  });

  test('removes a character at Backspace', async () => {
    const terminal = new Terminal();
    const answer = terminal.ask('? ', { hidden: true });
    terminal.input.write('secrets\x7f\r');
    expect(await answer).toBe('secret');
  });
});

describe('a password', () => {
  test('is not shown, nor is its length, and keeps its blanks', async () => {
    const terminal = new Terminal();
    const answer = terminal.ask('Password: ', { hidden: true });
    for (const character of ' a secret ') terminal.input.write(character);
    await nextTask();
    expect(terminal.shown).toBe('Password: ');
    terminal.input.write('\r');
    expect(await answer).toBe(' a secret ');
    expect(terminal.shown).toBe('Password: \n');
    expect(terminal.left).toBe(true);
  });
});

describe.each([{ hidden: false }, { hidden: true }])('a prompt (hidden: $hidden)', ({ hidden }) => {
  test('is interrupted by Ctrl-C with exit code 130', async () => {
    const terminal = new Terminal();
    const answer = terminal.ask('? ', { hidden });
    terminal.input.write('abc\x03');
    const error = await answer.catch((reason: unknown) => reason);
    expect(exitCode(error)).toBe(ExitCode.INTERRUPTED);
    expect(terminal.left).toBe(true);
  });

  test.each<[string, (terminal: Terminal) => void]>([
    ['Ctrl-D', ({ input }) => void input.write('\x04')],
    ['the end of input', ({ input }) => void input.end()],
  ])('has an empty answer at %s', async (_, end) => {
    const terminal = new Terminal();
    const answer = terminal.ask('? ', { hidden });
    end(terminal);
    expect(await answer).toBe('');
    expect(terminal.left).toBe(true);
  });
});

describe('a secret of several lines', () => {
  const whole = (text: string): boolean => text.replace(/\n/g, '') === 'onetwo';

  test('is read to its end from one paste: nothing is left for the shell', async () => {
    const terminal = new Terminal();
    const answer = askLines('Pairing string: ', whole, terminal);
    terminal.input.write('one\rtwo\r');
    expect(await answer).toBe('one\ntwo');
    expect([terminal.shown, terminal.left]).toEqual(['Pairing string: \n', true]);
  });

  test('that is incomplete prompts for more; Enter ends it', async () => {
    const terminal = new Terminal();
    const answer = askLines('Pairing string: ', whole, terminal);
    terminal.input.write('one\r');
    await nextTask();
    await nextTask();
    expect(terminal.shown).toMatch(/This is not all of it. Paste the rest, or press Enter to end: $/);
    terminal.input.write('\r');
    expect(await answer).toBe('one');
  });

  test('ends at Ctrl-C, and at the end of input', async () => {
    const [stopped, ended] = [new Terminal(), new Terminal()];
    const answers = [stopped, ended].map((terminal) => askLines('? ', whole, terminal));
    stopped.input.write('\x03');
    ended.input.end('one\r');
    await expect(answers[0]).rejects.toSatisfy((error) => exitCode(error) === ExitCode.INTERRUPTED);
    expect(await answers[1]).toBe('one');
  });
});
