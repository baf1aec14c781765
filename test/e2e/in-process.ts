/**
 * `svc` in this process, for commands whose start and end as a process are not under test: a start takes 0.3 s of
 * processor time. An asynchronous context separates the command's output from that of this process, so that several can
 * run at the same time.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { runProgram } from '../../cli/frame/program.ts';
import { svc } from '../../cli/program.ts';
import { reportOf, track } from '../support/process.ts';

export interface Output {
  stdout: string;
  stderr: string;
}

const running = new AsyncLocalStorage<Output>();
let commands = 0;
for (const name of ['stdout', 'stderr'] as const) divert(name);

/** Runs `svc` with `args`, which must not read standard input. @returns its exit code and output */
export async function svcInProcess(args: readonly string[]): Promise<Output & { code: number }> {
  const output = { stdout: '', stderr: '' };
  let code: number | undefined;
  const state = () => (code === undefined ? 'still runs in this process' : `ended with ${code}, in this process`);
  track({
    get running() {
      return code === undefined;
    },
    report: () => reportOf(['svc', ...args], state(), output),
  });
  commands++;
  try {
    code = await running.run(output, async () => runProgram(await svc(args), args));
  } finally {
    commands--;
    // On Node before 24 each promise of this process takes longer while the storage is in use.
    if (commands === 0) running.disable();
  }
  return { code, ...output };
}

/** The output of a running command goes into its own buffer, and it sees no terminal. */
function divert(name: 'stdout' | 'stderr'): void {
  const stream = process[name];
  const { isTTY } = stream;
  const write = stream.write.bind(stream) as (...given: unknown[]) => boolean;
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
    const output = running.getStore();
    if (output === undefined) return write(chunk, ...rest);
    output[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
    for (const callback of rest) if (typeof callback === 'function') callback();
    return true;
  };
  Object.defineProperty(stream, 'isTTY', { configurable: true, get: () => (running.getStore() === undefined ? isTTY : undefined) });
}
