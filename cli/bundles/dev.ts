/** Helpers for development. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {
  dev: async () => (await import('../dev/push-provider.ts')).devCommand(),
};
