/** The command `svc` with all its subcommands, for programs that run it in their own process. */
import type { Command } from 'commander';
import { commands as client } from './bundles/client.ts';
import { commands as dev } from './bundles/dev.ts';
import { commands as device } from './bundles/device.ts';
import { commands as station } from './bundles/station.ts';
import { programOf } from './frame/run.ts';

/** @param argv arguments to be parsed, without node and script */
export function svc(argv: readonly string[]): Promise<Command> {
  return programOf({ ...station, ...device, ...client, ...dev }, argv);
}
