/** Runs in the browser: the exports of an entry point, every way to load the core, and what the policy forbids. */
import { Core } from 'svc-connect/bindings';
import type { Place } from '../../bench/browser/task.ts';

/** The kind of place in which this runs. */
export function place(): Place {
  return typeof document === 'undefined' ? 'worker' : 'page';
}

/** Names that the module of the site exports. */
export async function exportsOf(module: string): Promise<string[]> {
  return Object.keys(await import(`/${module}.js`)).sort();
}

/** Seals the same bytes with a core from each source. `/core.wasm` is the file of the package. */
export async function everySource(): Promise<Record<string, string>> {
  const url = new URL('/core.wasm', location.origin);
  const bytes = await (await fetch(url)).arrayBuffer();
  const cores = {
    create: Core.create(),
    embedded: await Core.load(),
    url: await Core.load({}, url),
    response: await Core.load({}, await fetch(url)),
    bytes: await Core.load({}, bytes),
    module: await Core.load({}, await WebAssembly.compile(bytes)),
  };
  const [key, none] = [new Uint8Array(32), new Uint8Array()];
  return Object.fromEntries(Object.entries(cores).map(([name, { aead }]) => [name, aead.seal(key, 0, none, none).join()]));
}

/** Settles as `Core.load` does. */
export async function refusal(): Promise<void> {
  await Core.load();
}

/** Evaluates text as code, and hides the exception. */
export function hiddenEval(): string {
  try {
    return String(new Function('return 1')());
  } catch {
    return 'refused';
  }
}

/** Leaves a rejected promise without a handler. */
export function lostRejection(): void {
  void Promise.reject(new Error('this rejection is not handled'));
}

/** Throws: an error of the task itself. */
export function failure(): never {
  throw new Error('the task failed');
}
