/**
 * Runs a commander program as `svc`: usage errors and failures become one line and an exit code, --help ends with the
 * exit codes, and nothing calls process.exit while output is still being written.
 */
import { type Command, CommanderError, Help, type Option } from 'commander';
import { describe, EXIT_CODES, ExitCode, exitCode, UsageError } from './errors.ts';
import type { Streams } from './output.ts';

/** Parses `argv` (without node and script), runs the named command and returns the exit code. Never throws. */
export async function runProgram(program: Command, argv: readonly string[], streams: Streams = process): Promise<ExitCode> {
  frame(program, streams);
  program.addHelpText('afterAll', `\n${EXIT_CODES}`);
  try {
    refuseUnknown(program, argv);
    await program.parseAsync(argv, { from: 'user' });
    return ExitCode.OK;
  } catch (error) {
    return report(error, streams);
  }
}

/**
 * Commander passes these settings to commands made with `command()`, but not to those added with `addCommand()`: so all
 * are set here.
 */
function frame(command: Command, streams: Streams): void {
  command
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureHelp({ ...command.configureHelp(), optionDescription })
    .configureOutput({
      writeOut: (text) => streams.stdout.write(text),
      writeErr: (text) => streams.stderr.write(text),
      outputError: () => {},
    });
  for (const child of command.commands) frame(child, streams);
}

/** Describes an option. Commander would show its internal value for an option without a value as the default. */
function optionDescription(option: Option): string {
  return new Help().optionDescription(option).replace(/ \(preset: ""\)$/, '');
}

/** Refuses an unknown command: Commander would show the help of its parent, as if the command existed. */
function refuseUnknown(program: Command, argv: readonly string[]): void {
  if (!argv.some((word) => word === '--help' || word === '-h')) return;
  let command = program;
  for (const word of argv) {
    if (word.startsWith('-') || word === 'help' || command.commands.length === 0) return;
    const next = command.commands.find((each) => each.name() === word);
    // The command takes arguments, and this is one.
    if (next === undefined && command.registeredArguments.length > 0) return;
    if (next === undefined)
      throw new UsageError(`unknown command '${word}': there are ${command.commands.map((each) => each.name()).join(', ')}`);
    command = next;
  }
}

/** Prints the error of a command, and returns its exit code. */
export function report(error: unknown, streams: Streams): ExitCode {
  const code = exitCode(error);
  if (code === ExitCode.OK) return code;
  if (error instanceof CommanderError && error.code === 'commander.help') return code;
  streams.stderr.write(`svc: ${describe(error)}${code === ExitCode.USAGE ? ' (see --help)' : ''}\n`);
  if (process.env.SVC_DEBUG && error instanceof Error) streams.stderr.write(`${error.stack}\n`);
  return code;
}
