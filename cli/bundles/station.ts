/** Commands that need the server. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {
  basestation: async () => (await import('../basestation.ts')).basestationCommand(),
  admin: async () => (await import('../admin/index.ts')).adminCommand(),
};
