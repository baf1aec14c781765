/**
 * `npm run demo`: base station, device and client as separate processes on free ports in a temporary directory, with
 * real input. Prints each step with its time and figure and a closing table. Exits 0 only if every check passed. Leaves
 * no process and no file behind. `--json` ends with one JSON line instead.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Processes } from './processes.ts';
import { Report } from './report.ts';
import { coapSteps, outageStep, setUp, streamSteps, tunnelStep, underBulkStep } from './steps.ts';
import { upgradeStep } from './upgrade.ts';
import { uplinkStep } from './uplink.ts';

const HELP = `Usage: npm run demo [-- --json]

Starts a base station, a device and a client as separate processes on free ports, lets them do the whole job on real data and checks it.

  --json   end with one JSON line instead of a table
  --help   show this

Exit codes: 0 every check held, 1 one did not, 2 wrong use.
`;

/** Limit for the whole demo, ms. */
const DEADLINE = 120_000;

const flags = process.argv.slice(2);
if (flags.includes('--help')) {
  process.stdout.write(HELP);
} else if (flags.some((flag) => flag !== '--json')) {
  process.stderr.write(`demo: unknown argument ${flags.find((flag) => flag !== '--json')}\n${HELP}`);
  process.exitCode = 2;
} else {
  process.exitCode = await demo(flags.includes('--json'));
}

async function demo(json: boolean): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-demo-'));
  const processes = new Processes();
  const report = new Report(json);
  const stop = async (): Promise<void> => {
    await processes.stopAll();
    await rm(folder, { recursive: true, force: true });
  };
  const abort = (): void => {
    void stop().then(() => process.exit(1));
  };
  const deadline = setTimeout(abort, DEADLINE);
  process.once('SIGINT', abort);
  process.once('SIGTERM', abort);
  try {
    const stage = await setUp(report, processes, folder);
    await coapSteps(report, stage);
    await streamSteps(report, stage);
    await tunnelStep(report, stage);
    await underBulkStep(report, stage);
    await upgradeStep(report, stage);
    await uplinkStep(report, stage);
    await outageStep(report, stage, 'SIGTERM');
    await outageStep(report, stage, 'SIGKILL');
  } catch (error) {
    if (report.ok || report.steps.length === 0) process.stderr.write(`demo: ${(error as Error).message}\n`);
    process.exitCode = 1;
  } finally {
    clearTimeout(deadline);
    await stop();
  }
  report.close();
  return report.ok && process.exitCode !== 1 ? 0 : 1;
}
