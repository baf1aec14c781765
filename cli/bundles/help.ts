/** What needs no command: the help of `svc` itself, and its mistakes. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {};
