/**
 * The first script of a page and of its worker: fetches a task, runs it in its place and posts the outcome.
 *
 * 1. Collect uncaught errors and violations of the Content-Security-Policy. A library may catch the exception of a
 *    violation, so the event reveals it.
 * 2. In the page, start a worker with this same script for a task whose place is the worker.
 * 3. Import the module of the task only now, so that errors while it loads are collected too.
 */
import type { Outcome, Task } from './task.ts';

const errors: string[] = [];
addEventListener('error', ({ message, filename, lineno }) => errors.push(`${message} at ${filename}:${lineno}`));
addEventListener('unhandledrejection', ({ reason }) => errors.push(`not caught: ${described(reason)}`));
addEventListener('securitypolicyviolation', (event) => {
  const { violatedDirective, blockedURI, sourceFile, lineNumber } = event as SecurityPolicyViolationEvent;
  errors.push(`the Content-Security-Policy forbids ${blockedURI} (${violatedDirective}) at ${sourceFile}:${lineNumber}`);
});

const id = new URL(location.href).searchParams.get('task');
const task = (await (await fetch(`/task/${id}`)).json()) as Task;
if (task.place === 'worker' && typeof document !== 'undefined') startWorker();
else await post(await outcomeOf(task));

function startWorker(): void {
  const worker = new Worker(location.origin + new URL(import.meta.url).pathname + location.search, { type: 'module' });
  worker.onerror = ({ message, filename, lineno }) => void post({ error: `worker: ${message} at ${filename}:${lineno}` });
}

async function outcomeOf({ module, call, input }: Task): Promise<Outcome> {
  let value: unknown;
  try {
    const functions = (await import(`/${module}.js`)) as Record<string, (input: unknown) => unknown>;
    value = await functions[call]?.(input);
  } catch (error) {
    errors.push(described(error));
  }
  await turn();
  return errors.length > 0 ? { error: errors.join('\n') } : { value };
}

/**
 * Waits two turns of the event loop: an uncaught rejection is detected at the end of one turn and reported in the next.
 */
async function turn(): Promise<void> {
  for (let timers = 0; timers < 2; timers++) await new Promise((resolve) => setTimeout(resolve));
}

async function post(outcome: Outcome): Promise<void> {
  await fetch(`/outcome/${id}`, { method: 'POST', body: JSON.stringify(outcome) });
}

function described(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
