/** Options of a command that stands below another one, which takes its own options wherever they stand. */
import type { Command } from 'commander';
import { UsageError } from './errors.ts';

/**
 * The options of the command, with those above it that it shares.
 * @param shared names of them, as commander has them @throws UsageError for any other one that was given: it would do nothing
 */
export function sharedOptions<Options extends object>(command: Command, shared: readonly string[]): Options {
  for (let above = command.parent; above !== null; above = above.parent) {
    for (const option of above.options) {
      const name = option.attributeName();
      if (!shared.includes(name) && above.getOptionValueSource(name) === 'cli')
        throw new UsageError(`${option.long} has no effect on ${pathOf(command)}: leave it out`);
    }
  }
  return command.optsWithGlobals<Options>();
}

/** `svc device invite`. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
