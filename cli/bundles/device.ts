/** The example device, in its own bundle to save memory. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {
  device: async () => (await import('../device.ts')).deviceCommand(),
};
