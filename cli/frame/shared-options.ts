/** Options of a subcommand whose parent takes its own options in any position. */
import type { Command } from 'commander';
import { UsageError } from './errors.ts';

/**
 * Returns the options of the command, with those of its parents that it shares.
 * @param shared names of them, as in commander
 * @throws UsageError for any other given one, which would have no effect
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
