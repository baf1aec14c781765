/** Helpers for development. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {
  dev: async () => (await import('../dev/index.ts')).devCommand(),
};
