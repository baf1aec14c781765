/**
 * Runs in a worker of the tests: records the calls of operations, or carries out one replacement (replacement.ts). It
 * is a setup file, so that it is there before the first module of the project.
 */
import { afterEach, beforeEach, inject, vi } from 'vitest';
import { type Declarations, effectCount, openModule, recordedCalls, startTest } from './replace.ts';

declare global {
  var __openModule: ((file: string, declarations: Declarations) => void) | undefined;
}

declare module 'vitest' {
  interface TaskMeta {
    /** Outcomes of each operation's calls, see replace.ts. */
    calls?: Record<string, string>;
    /** How often the replacement took effect in the worker, until this test ended. */
    effects?: number;
  }
}

const proof = inject('proof');
globalThis.__openModule = (file, declarations) => openModule(proof, file, declarations);
vi.setConfig({ testTimeout: proof.testTimeout });
beforeEach(({ task }) => startTest(task.id));
afterEach(({ task }) => {
  if (proof.replacement === null) task.meta.calls = recordedCalls(task.id);
  else task.meta.effects = effectCount();
});
