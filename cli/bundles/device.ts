/** The example device, apart from all others for its memory. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {
  device: async () => (await import('../device.ts')).deviceCommand(),
};
