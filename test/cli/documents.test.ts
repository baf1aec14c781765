/**
 * docs/pairing.md and docs/paths.md show only existing commands, with existing options and the right number of
 * arguments, and name every code. No document and no help keeps keys in a folder of the sources.
 */
import { readdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { basestationCommand } from '../../cli/basestation.ts';
import { parseDeviceConfiguration } from '../../cli/device-app/configuration.ts';
import { AUDIT_EVENTS } from '../../cli/device-audit.ts';
import { adviceOn, notDirectCodes } from '../../cli/doctor/advice.ts';
import { hint } from '../../cli/frame/errors.ts';
import { svc } from '../../cli/program.ts';
import { SvcClient } from '../../client/node.ts';
import { Device } from '../../device/index.ts';
import { pairingModes } from '../../protocol/records/index.ts';

const text = readFileSync(new URL('../../docs/pairing.md', import.meta.url), 'utf8');
const lines = [...text.matchAll(/^svc .*$/gm)].map(([line]) => line.replace(/\s+# .*$/, ''));

/** Splits a line into shell words; quotes hold words together. */
function words(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '').slice(1);
}

/** Parses the line with all actions replaced. @returns what it ran */
async function parsed(line: string): Promise<{ ran: string; options: Record<string, unknown>; args: readonly string[] }> {
  const program = await svc(words(line));
  let ran: Awaited<ReturnType<typeof parsed>> | undefined;
  const replace = (command: Command, name: string): void => {
    command.exitOverride();
    if (command.commands.length === 0 || command.name() === 'device') {
      command.action(() => {
        ran = { ran: name, options: command.opts(), args: command.args };
      });
    }
    for (const child of command.commands) replace(child, `${name} ${child.name()}`.trim());
  };
  replace(program, '');
  await program.parseAsync(words(line.replaceAll('<hex>', 'ab'.repeat(32))), { from: 'user' });
  if (ran === undefined) throw new Error(`nothing ran: ${line}`);
  return ran;
}

describe('docs/pairing.md', () => {
  test('has commands', () => expect(lines.length).toBeGreaterThan(15));

  test.each(lines)('shows a valid command: %s', async (line) => {
    const { ran, options, args } = await parsed(line);
    expect(line.startsWith(`svc ${ran}`)).toBe(true);
    // A pairing string, here or on standard input, names the device.
    const named = args.find((each) => each.startsWith('p=') || each === '-');
    expect(options.device ?? options.address ?? options.server ?? named).toBeDefined();
  });

  test('explains every mode', () => {
    for (const mode of pairingModes) expect(text).toContain(`| ${mode} |`);
  });
});

describe('docs/paths.md', () => {
  const paths = readFileSync(new URL('../../docs/paths.md', import.meta.url), 'utf8');
  const commands = [...paths.matchAll(/^ {4}(svc .*)$/gm)].map(([, line = '']) => line.replace(/\s+# .*$/, ''));

  test('has commands', () => expect(commands.length).toBeGreaterThan(4));

  test.each(commands)('shows a valid command: %s', async (line) => expect(line.startsWith(`svc ${(await parsed(line)).ran}`)).toBe(true));

  test.each(notDirectCodes)('has %s, and the advised command runs', async (code) => {
    expect(paths).toContain(`| ${code} |`);
    for (const [stunPort, given, outside, devicePort] of [
      [undefined, false, undefined, undefined],
      [4434, true, '198.51.100.2', 5600],
      [3478, false, '198.51.100.2', undefined],
    ] as const) {
      const device = "home --state './data/my state'";
      const advice = adviceOn(code, { device, stunPort, relayOnly: given, noHardNat: given, outside, devicePort });
      if (/port 5\d{3}/.test(advice)) expect(new Set(advice.match(/(?<=port |:)5\d{3}/g))).toEqual(new Set([String(devicePort ?? 5593)]));
      expect(advice).not.toContain(`--stun-port ${stunPort}`);
      const advised = [...advice.matchAll(/`(svc [^`]*)`/g)].map(([, line = '']) => line);
      if (code === 'STUN_SILENT' || code === 'BOTH_RANDOM') expect(advised.length).toBeGreaterThan(0);
      for (const line of advised) {
        const { ran, options } = await parsed(line.replace('<name>', 'bob'));
        expect(line.startsWith(`svc ${ran}`)).toBe(true);
        if (line.includes('home')) expect(options).toMatchObject({ state: './data/my state' });
        if (ran === 'pair') expect(options).toMatchObject({ username: 'bob' });
      }
      expect(advice.split(/[.!] [A-Z]/).length).toBeLessThanOrEqual(2);
    }
  });

  test('shows programs that run, and docs/device.md a valid device.json', () => {
    const block = (content: string, name: string): string => {
      const found = new RegExp(`\`\`\`${name}\\n([\\s\\S]*?)\`\`\``).exec(content);
      if (found === null) throw new Error(`there is no ${name}`);
      return found[1]!;
    };
    const beforeConnect = block(paths, 'js client').split('await ')[0]!;
    new Function('SvcClient', beforeConnect)(SvcClient);
    new Function('Device', block(paths, 'js device'))(Device);
    const device = readFileSync(new URL('../../docs/device.md', import.meta.url), 'utf8');
    expect(parseDeviceConfiguration(JSON.parse(block(device, 'json device'))).rendezvous).toMatchObject({ mode: 'paired' });
  });

  test('names the codes of channels that have a remedy', () => {
    const table = /### Why there is no connection\n([\s\S]*?)\n## /.exec(paths)?.[1] ?? '';
    const codes = [...table.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g)].map(([code]) => code).filter((code) => !code.startsWith('OPERATION'));
    const withoutRemedy = codes.filter((code) => hint(code) === undefined);
    expect(withoutRemedy).toEqual(['NOT_FOUND', 'NOT_FOUND']);
  });
});

describe('directories of commands', () => {
  const root = new URL('../../', import.meta.url);
  const pages = readdirSync(new URL('docs', root), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'));
  const documents = ['README.md', 'package.json', ...pages.map((name) => `docs/${name}`)];
  let help = '';
  basestationCommand()
    .configureOutput({ writeOut: (part) => (help += part) })
    .outputHelp();
  const texts = [...documents.map((name): [string, string] => [name, readFileSync(new URL(name, root), 'utf8')]), ['help', help] as const];

  test.each(texts)('%s keeps data below data/, which git ignores', (_name, content) => {
    const directories = [...content.matchAll(/--(?:data|state) ([.\w/]+)/g)].map(([, directory]) => directory);
    for (const directory of directories) expect(directory).toMatch(/^\.\/data\/\w/);
  });

  test('data/ is ignored', () => expect(readFileSync(new URL('.gitignore', root), 'utf8')).toMatch(/^data\/$/m));
});

test('svc device audit show --event knows the events of docs/audit.md', () => {
  const audit = readFileSync(new URL('../../docs/audit.md', import.meta.url), 'utf8');
  const table = /## Events\n([\s\S]*?)\n## /.exec(audit)?.[1] ?? '';
  const names = table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([a-z-]+)`/g)].map(([, name]) => name));
  expect([...AUDIT_EVENTS].sort()).toEqual(names.sort());
});
