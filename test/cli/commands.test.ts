/** The table of commands against the commands themselves: what `svc --help` shows of each, and where `svc` finds it. */
import { readdirSync } from 'node:fs';
import { Command, Help } from 'commander';
import { describe, expect, test } from 'vitest';
import { commands as client } from '../../cli/bundles/client.ts';
import { commands as dev } from '../../cli/bundles/dev.ts';
import { commands as device } from '../../cli/bundles/device.ts';
import { commands as help } from '../../cli/bundles/help.ts';
import { commands as station } from '../../cli/bundles/station.ts';
import { COMMANDS, commandOf } from '../../cli/commands.ts';
import { describe as described } from '../../cli/frame/errors.ts';
import { type Loaders, missingPackage, programOf } from '../../cli/frame/run.ts';
import { svc } from '../../cli/program.ts';

const bundles: Readonly<Record<string, Loaders>> = { client, dev, device, help, station };
const loaders = Object.assign({}, ...Object.values(bundles)) as Loaders;

describe('the table', () => {
  test('has a row for each command of a bundle, and names its bundle', () => {
    const rows = COMMANDS.map(({ name, bundle }) => `${bundle}: ${name}`);
    const there = Object.entries(bundles).flatMap(([bundle, each]) => Object.keys(each).map((name) => `${bundle}: ${name}`));
    expect(rows.toSorted()).toEqual(there.toSorted());
  });

  test('knows all bundles', () => {
    const files = readdirSync(new URL('../../cli/bundles', import.meta.url)).map((file) => file.replace(/\.ts$/, ''));
    expect(Object.keys(bundles).toSorted()).toEqual(files.toSorted());
  });

  test.each(COMMANDS)('describes $name as the command does itself', async ({ name, usage, description }) => {
    const command = await loaders[name]!();
    expect(command.name()).toBe(name);
    expect(command.description()).toBe(description);
    expect(`${name} ${usage}`.trimEnd()).toBe(new Help().subcommandTerm(command));
  });

  test('makes the same help as the commands themselves', async () => {
    const whole = new Command('svc');
    for (const { name } of COMMANDS) whole.addCommand(await loaders[name]!());
    const commands = (program: Command): string => program.helpInformation().replace(/[\s\S]*\nCommands:/, '');
    expect(commands(await programOf({}, ['--help']))).toBe(commands(whole));
  });
});

describe('the selected command', () => {
  test.each([
    [['coap', 'GET', '/x'], 'coap'],
    [['help', 'coap'], 'coap'],
    [['admin', '--help'], 'admin'],
    [['--help'], undefined],
    [['help'], undefined],
    [[], undefined],
    [['constructor'], undefined],
    [['--json', 'coap'], undefined],
  ])('%j: %s', (argv, name) => {
    expect(commandOf(argv)?.name).toBe(name);
  });

  test('is the only one that is loaded', async () => {
    const program = await svc(['status']);
    expect(program.commands.map((command) => command.name())).toEqual(['status']);
  });
});

describe('a package that is not installed', () => {
  const missing = (message: string, code = 'MODULE_NOT_FOUND') => Object.assign(new Error(message), { code });

  test('is named, with a remedy', async () => {
    const error = await programOf({ admin: () => Promise.reject(missing("Cannot find module 'libsql'\nRequire stack:\n- /x")) }, [
      'admin',
    ]).catch(described);
    expect(error).toBe(
      'svc admin needs the package libsql, which is optional and not installed: add it with npm install libsql, or install svc-connect without --omit=optional',
    );
  });

  test('has its scope, and no path inside it', () => {
    expect(missingPackage(missing("Cannot find package '@libsql/linux-x64-gnu' imported from /x", 'ERR_MODULE_NOT_FOUND'))).toBe(
      '@libsql/linux-x64-gnu',
    );
    expect(missingPackage(missing("Cannot find module 'libsql/promise'"))).toBe('libsql');
    expect(missingPackage(missing("Cannot find module '/a/b.cjs'"))).toBeUndefined();
    expect(missingPackage(missing("Cannot find module 'libsql'", 'EACCES'))).toBeUndefined();
  });

  test('leaves other errors unchanged', async () => {
    await expect(programOf({ admin: () => Promise.reject(new TypeError('broken')) }, ['admin'])).rejects.toThrow(TypeError);
  });
});
