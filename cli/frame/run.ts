/**
 * The program `svc` around one command: loads only that command and what it needs, for the bundles (`bundles/`) and the
 * tests. Without a command, the table of `commands.ts` stands for all of them.
 */
import { Command } from 'commander';
import { VERSION } from '../../protocol/records/version.ts';
import { COMMANDS, commandOf } from '../commands.ts';
import { CommandError, type ExitCode } from './errors.ts';
import { report, runProgram } from './program.ts';

/** Name of a command → function that loads and creates it. */
export type Loaders = Readonly<Record<string, () => Promise<Command>>>;

/** `svc` with the command that `argv` names, or with the descriptions of all. @param argv without node and script */
export async function programOf(commands: Loaders, argv: readonly string[]): Promise<Command> {
  const program = new Command('svc')
    .description('Reach a device: end-to-end encrypted connections by product id and device id, through a base station or directly.')
    .version(VERSION, '-V, --version');
  const row = commandOf(argv);
  return row === undefined ? withTable(program) : program.addCommand(await load(commands, row.name));
}

/** Runs this process as `svc` with `argv` and sets its exit code. Never rejects. */
export async function run(commands: Loaders, argv: readonly string[]): Promise<ExitCode> {
  const code = await programOf(commands, argv).then(
    (program) => runProgram(program, argv),
    (error: unknown) => report(error, process),
  );
  process.exitCode = code;
  return code;
}

/** @throws CommandError for a package that is not installed: some are optional */
async function load(commands: Loaders, name: string): Promise<Command> {
  try {
    return await commands[name]!();
  } catch (error) {
    const missing = missingPackage(error);
    if (missing === undefined) throw error;
    throw new CommandError(
      `svc ${name} needs the package ${missing}, which is optional and not installed: add it with npm install ${missing}, or install svc-connect without --omit=optional`,
      { cause: error },
    );
  }
}

/** The package that Node did not find; undefined for any other error. */
export function missingPackage(error: unknown): string | undefined {
  const { code, message = '' } = error as { code?: unknown; message?: string };
  if (code !== 'MODULE_NOT_FOUND' && code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  return /^Cannot find (?:module|package) '((?:@[\w.-]+\/)?[\w.-]+)/.exec(message)?.[1];
}

function withTable(program: Command): Command {
  const usage = new Map(COMMANDS.map((row) => [row.name, `${row.name} ${row.usage}`.trimEnd()]));
  program.configureHelp({ subcommandTerm: (command) => usage.get(command.name()) ?? 'help [command]' });
  for (const { name, description } of COMMANDS) program.addCommand(new Command(name).description(description));
  return program;
}
