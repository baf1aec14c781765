/**
 * Command lines in documents and messages, and whether `svc` accepts them: commands, options, their values, and
 * arguments. Nothing runs.
 */
import { type Argument, type Command, Option } from 'commander';

/** Stands for a value that a person, or the program, fills in. */
const FILLED = '\u0001';

export interface CheckOptions {
  /** Whether the line can be run, with all required parts; otherwise it may be a mention, such as `svc iam users`. */
  readonly whole: boolean;
}

/**
 * Returns what is wrong with a line; undefined when nothing is.
 * @param program with all commands
 * @param line begins with `svc`
 */
export function problemOf(program: Command, line: string, { whole }: CheckOptions): string | undefined {
  const [, ...words] = wordsOf(line);
  let command = program;
  while (words.length > 0) {
    if (words[0]!.includes(FILLED) && command.registeredArguments.length === 0) return undefined;
    const names = words[0]!.split('|');
    const children = names.map((name) => command.commands.find((each) => each.name() === name));
    if (children.includes(undefined)) {
      if (command.commands.length > 0 && command.registeredArguments.length === 0 && /^[a-z]/.test(words[0]!))
        return `there is no command ${words[0]}`;
      break;
    }
    words.shift();
    command = children[0]!;
    if (names.length > 1) return undefined;
  }
  return problemOfRest(command, words, whole);
}

function problemOfRest(command: Command, words: readonly string[], whole: boolean): string | undefined {
  const args: string[] = [];
  const given = new Set<string>();
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === '…') return undefined;
    if (!/^--?[a-z]/i.test(word)) {
      args.push(word);
      continue;
    }
    const option = optionOf(command, word);
    if (option === undefined) return `${command.name()} has no option ${word}`;
    given.add(option.attributeName());
    if (!option.required) continue;
    const value = rest.shift();
    if (value === undefined) {
      if (whole) return `${word} has no value`;
      continue;
    }
    const problem = valueProblem(option, value);
    if (problem !== undefined) return `${word}: ${problem}`;
  }
  return argumentsProblem(command, args) ?? (whole ? missing(command, args, given) : undefined);
}

/** An option of the command, or of those above it; `svc --option` stands for the commands that have it. */
function optionOf(command: Command, word: string): Option | undefined {
  const all: Option[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) all.push(...each.options, new Option('-h, --help'));
  if (command.parent === null) for (const child of command.commands) all.push(...child.options);
  return all.find(({ long, short }) => long === word || short === word);
}

function valueProblem(option: Option, value: string): string | undefined {
  const unknowable = value.includes(FILLED) || value.includes('…') || option.flags.includes('<file>') || option.flags.includes('<client>');
  if (unknowable || option.parseArg === undefined) return undefined;
  try {
    (option.parseArg as (text: string, previous: unknown) => unknown)(value, undefined);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Values that a program fills in may be options, or absent. */
function argumentsProblem(command: Command, args: readonly string[]): string | undefined {
  const plain = args.filter((each) => !each.includes(FILLED));
  const places: readonly Argument[] = command.registeredArguments;
  if (plain.length > places.length && places.at(-1)?.variadic !== true) return `${command.name()} takes ${places.length} arguments`;
  for (const [index, place] of places.entries()) {
    const value = args[index];
    if (value === undefined || value.includes(FILLED) || value.includes('…')) continue;
    if (place.argChoices !== undefined && !place.argChoices.includes(value)) return `${value} is not one of ${place.argChoices.join(', ')}`;
  }
  return undefined;
}

function missing(command: Command, args: readonly string[], given: ReadonlySet<string>): string | undefined {
  const places = command.registeredArguments.filter(({ required }) => required);
  if (args.length < places.length) return `${command.name()} needs ${places[args.length]!.name()}`;
  for (let each: Command | null = command; each !== null; each = each.parent) {
    const option = each.options.find(({ mandatory, defaultValue }) => mandatory && defaultValue === undefined);
    if (option !== undefined && !given.has(option.attributeName())) return `${command.name()} needs ${option.long}`;
  }
  return undefined;
}

/**
 * Splits a line into shell words, up to a redirection, a comment or the end of the command; `[…]` of a synopsis is
 * optional.
 */
export function wordsOf(line: string): string[] {
  let text = line;
  // Inner braces first: filled-in values may contain objects.
  for (let before = ''; before !== text; ) {
    before = text;
    text = text.replace(/\$?\{[^{}]*\}/g, FILLED);
  }
  text = text.replace(/<[^<>]*>/g, FILLED).replace(/\s#.*$/, '');
  const words: string[] = [];
  for (const [, quoted, plain = ''] of text.matchAll(/'([^']*)'|(\S+)/g)) {
    if (quoted === undefined && ['&', '|', '<', '>'].includes(plain)) break;
    words.push(quoted ?? plain.replace(/^\[|\]$/g, ''));
  }
  return words;
}

/** Every command that does something, with its name as typed. */
export function leavesOf(command: Command, name = ''): { readonly name: string; readonly command: Command }[] {
  const own =
    command.commands.length === 0 ||
    command.registeredArguments.length > 0 ||
    (command.name() === 'device' && command.parent?.parent === null);
  const children = command.commands.flatMap((child) => leavesOf(child, `${name} ${child.name()}`.trim()));
  return own && name !== '' ? [{ name, command }, ...children] : children;
}
