/** Runs this Node, and git, outside of any test: for builds of the core, and for the test runner itself. */
import { spawn, spawnSync } from 'node:child_process';

/** Process groups of the current runs. */
const running = new Set<number>();

/** Kills every run. Each has its own process group, which does not end with this process. */
export function killRuns(): void {
  for (const pid of running) killGroup(pid);
}

/** Exit status of a run, null after `limit`, and its output. */
export interface Run {
  readonly status: number | null;
  readonly output: string;
}

/** Runs this Node with `args` in `cwd`. After `limit` ms the process and all its children are killed. */
export function run(args: readonly string[], cwd: string, limit: number, env: NodeJS.ProcessEnv = process.env): Promise<Run> {
  return new Promise((resolve, reject) => {
    // Its own process group, so that the workers of the test runner end with it.
    const child = spawn(process.execPath, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    if (child.pid !== undefined) running.add(child.pid);
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      killGroup(child.pid);
    }, limit);
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
    child.on('error', reject);
    child.on('close', (status) => {
      clearTimeout(timer);
      if (child.pid !== undefined) running.delete(child.pid);
      resolve({ status: late ? null : (status ?? 1), output: Buffer.concat(output).toString() });
    });
  });
}

/** The files that differ from `commit`, or what is wrong with it. */
export function filesSince(root: string, commit: string): string[] | string {
  const { status, stdout } = spawnSync('git', ['diff', '--name-only', commit, '--'], { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n') : `git does not know the commit ${commit}`;
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}
