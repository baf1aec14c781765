/**
 * Every printed or documented command is one that `svc` accepts: lines of documents and helps as a whole, mentions in
 * text and messages by their names. In a document that keeps data or state in another place than the default, each line
 * names it. `docs/commands.md` has an example of every command.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Command } from 'commander';
import { beforeAll, describe, expect, test } from 'vitest';
import { commands as client } from '../../cli/bundles/client.ts';
import { commands as dev } from '../../cli/bundles/dev.ts';
import { commands as device } from '../../cli/bundles/device.ts';
import { commands as station } from '../../cli/bundles/station.ts';
import { leavesOf, problemOf, wordsOf } from './command-lines.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, root), 'utf8');
const below = (folder: string, ending: string): string[] =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);

const documents = [...below('docs', '.md'), 'README.md', 'SECURITY.md', 'PROTOCOL.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'];
const sources = ['cli', 'client', 'device', 'server', 'platform', 'runtime'].flatMap((folder) => below(folder, '.ts'));

const program = new Command('svc').version('0');
beforeAll(async () => {
  for (const load of Object.values({ ...station, ...device, ...client, ...dev })) program.addCommand(await load());
});

/** Lines to be run: in shell blocks, and indented. */
function linesOf(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```sh[^\n]*\n(.*?)^ *```/gms)].map(([, block = '']) => block);
  const indented = [...text.matchAll(/^ {4}(svc .*)$/gm)].map(([, line = '']) => line);
  const shell = blocks.flatMap((block) => [...block.matchAll(/^ *(?:npx --no -- )?(svc .*)$/gm)].map(([, line = '']) => line));
  return [...shell, ...indented];
}

/** `svc …` in backticks. */
function mentionsOf(text: string): string[] {
  return [...text.matchAll(/`(svc [^`\n]*?)\\?`/g)].map(([, line = '']) => line);
}

function problems(lines: readonly string[], whole: boolean): string[] {
  return lines.flatMap((line) => {
    const problem = problemOf(program, line, { whole });
    return problem === undefined ? [] : [`${line}: ${problem}`];
  });
}

test.each(documents)('%s: lines to be run, and commands in its text, are valid', (name) => {
  const text = read(name);
  expect(problems(linesOf(text), true)).toEqual([]);
  expect(problems(mentionsOf(text), false)).toEqual([]);
});

test('messages and comments name existing commands and options', () => {
  const found = sources.flatMap((name) => problems(mentionsOf(read(name)), false).map((problem) => `${name}: ${problem}`));
  expect(found).toEqual([]);
});

test('a word after "svc" in a message is a command, and its options follow', () => {
  const names = program.commands.map((command) => command.name());
  const found = below('cli', '.ts').flatMap((name) =>
    [...read(name).matchAll(/(?<![/\w])svc ([a-z]+)((?: --?[a-z-]+)*)/g)].flatMap(([line, command = '']) =>
      !names.includes(command) ? [`${name}: ${line}`] : problems([line], false).map((problem) => `${name}: ${problem}`),
    ),
  );
  expect(found).toEqual([]);
});

test('the examples of --help are valid', () => {
  const helps: string[] = [];
  for (const { command } of leavesOf(program)) {
    command.configureOutput({ writeOut: (text) => void helps.push(text) }).outputHelp();
  }
  const text = helps.join('\n');
  expect(
    problems(
      [...text.matchAll(/^ {2}(svc .*)$/gm)].map(([, line = '']) => line),
      true,
    ),
  ).toEqual([]);
  expect(problems(mentionsOf(text), false)).toEqual([]);
});

describe('directories', () => {
  const optionValue = (words: readonly string[], option: string): string | undefined =>
    words.includes(option) ? words[words.indexOf(option) + 1] : undefined;

  test.each(documents)('%s: has --data or --state each time if it has it once', (name) => {
    const lines = linesOf(read(name)).map(wordsOf);
    for (const commands of [['basestation', 'admin'], ['device']]) {
      const data = lines.filter(([, command = '']) => commands.includes(command)).map((words) => optionValue(words, '--data'));
      expect([...new Set(data)].length).toBeLessThan(2);
    }
    const clients = lines.filter((words) => words.includes('-d') || words[1] === 'pair' || words[1] === 'connect');
    const states = clients.map((words) => optionValue(words, '--state') !== undefined);
    expect([...new Set(states)].length).toBeLessThan(2);
  });
});

test('docs/commands.md has an example of each command', () => {
  const examples = linesOf(read('docs/commands.md')).map((line) => wordsOf(line).slice(1).join(' '));
  const without = leavesOf(program).filter(({ name }) => !examples.some((line) => line === name || line.startsWith(`${name} `)));
  expect(without.map(({ name }) => name)).toEqual([]);
});

test('an invalid line is detected', () => {
  const wrong: [string, boolean][] = [
    ['svc fly', false],
    ['svc admin fly add', false],
    ['svc coap GET /x --fly', false],
    ['svc coap GET', true],
    ['svc admin device add', true],
    ['svc coap GET /x --timeout', true],
    ['svc coap GET /x --timeout never', true],
    ['svc iam settings set local-open-pairing maybe -d home', true],
    ['svc forget a b', false],
  ];
  expect(wrong.map(([line, whole]) => problemOf(program, line, { whole }) === undefined)).toEqual(wrong.map(() => false));
});
