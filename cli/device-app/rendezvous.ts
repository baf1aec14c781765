/** The search of `svc device` for direct paths: its options, merged with device.json. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { PortMapping, RendezvousMode, RendezvousOptions } from '../../device/index.ts';
import { MAX_STATED, portMappings, rendezvousModes, statedCandidate } from '../../device/rendezvous-options.ts';
import { collect, HARD_NAT_HELP, noCandidatesOn } from '../frame/arguments.ts';
import { UsageError } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';

export interface RendezvousFlags {
  rendezvous?: RendezvousMode;
  candidate: string[];
  /** Values of `--no-candidates-on`: interfaces to leave out. */
  candidatesOn: string[];
  hardNat: boolean;
  portMapping?: PortMapping;
}

/** Adds the options. */
export function withRendezvous(command: Command): Command {
  return command
    .addOption(new Option('--rendezvous <with>', 'clients with which it seeks direct paths (default: anyone)').choices(rendezvousModes))
    .addOption(
      new Option(
        '--candidate <ip:port>',
        `address that reaches it from outside, such as a forwarded UDP port of its router; repeatable, at most ${MAX_STATED}`,
      )
        .argParser(collect(candidate))
        .default([], 'none'),
    )
    .addOption(noCandidatesOn('client'))
    .option('--no-hard-nat', HARD_NAT_HELP)
    .addOption(
      new Option('--port-mapping <how>', 'ask routers to map the UDP port: auto, by PCP and NAT-PMP, or off (default: auto)').choices(
        portMappings,
      ),
    );
}

/** An option overrides the file; lists are merged. @throws UsageError for too many candidates */
export function rendezvousOf(
  file: RendezvousOptions = {},
  flags: RendezvousFlags,
): RendezvousOptions & { readonly noCandidatesOn: readonly string[] } {
  const mode = flags.rendezvous ?? file.mode;
  const portMapping = flags.portMapping ?? file.portMapping;
  const candidates = [...new Set([...(file.candidates ?? []), ...flags.candidate])];
  if (candidates.length > MAX_STATED)
    throw new UsageError(`--candidate: a device has at most ${MAX_STATED} stated addresses, with those of device.json: leave some out`);
  return {
    ...(mode !== undefined && { mode }),
    ...(portMapping !== undefined && { portMapping }),
    hardNat: flags.hardNat && file.hardNat !== false,
    candidates,
    noCandidatesOn: [...(file.noCandidatesOn ?? []), ...flags.candidatesOn],
  };
}

/** The given options; undefined for the others. */
export function givenRendezvous({ rendezvous, candidate, candidatesOn, hardNat, portMapping }: RendezvousFlags): Record<string, unknown> {
  return {
    '--rendezvous': rendezvous,
    '--candidate': candidate[0],
    '--no-candidates-on': candidatesOn[0],
    '--no-hard-nat': hardNat ? undefined : false,
    '--port-mapping': portMapping,
  };
}

/** Warns of options without effect, when an option or device.json turns direct paths off. */
export function warnOfOff(output: Output, mode: RendezvousMode | undefined, flags: RendezvousFlags): void {
  if (mode !== 'off') return;
  const { '--rendezvous': off, ...others } = givenRendezvous(flags);
  const unused = Object.keys(others).filter((option) => others[option] !== undefined);
  if (unused.length === 0) return;
  const by = off === undefined ? 'device.json turns direct paths off' : '--rendezvous off';
  output.warn(`${unused.join(', ')} ${unused.length === 1 ? 'has' : 'have'} no effect: ${by}`);
}

function candidate(text: string): string {
  try {
    statedCandidate(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
  return text;
}
