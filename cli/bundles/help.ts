/** Runs without a command: the help of `svc` itself, and its usage errors. */
import type { Loaders } from '../frame/run.ts';

export const commands: Loaders = {};
