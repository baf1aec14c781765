/**
 * The first script of a page and of its worker: fetches a task, runs it in its place and posts the outcome.
 *
 * 1. Errors that nobody catches and violations of the Content-Security-Policy are collected, so that none passes unseen: libraries catch
 *    the exception of a violation.
 * 2. The page hands a task of the worker on to a worker that runs this same script.
 * 3. The module of the task is imported only now, so that what happens while it loads is seen, too.
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

/** Rejections that nobody catches are known at the end of one turn of the event loop, and told in the next. */
async function turn(): Promise<void> {
  for (let timers = 0; timers < 2; timers++) await new Promise((resolve) => setTimeout(resolve));
}

async function post(outcome: Outcome): Promise<void> {
  await fetch(`/outcome/${id}`, { method: 'POST', body: JSON.stringify(outcome) });
}

function described(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
