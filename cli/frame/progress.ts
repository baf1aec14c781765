/** A progress bar for long transfers: on standard error, in a terminal only. Elsewhere it is silent. */
import { Presets, SingleBar } from 'cli-progress';
import type { Output } from './output.ts';

const MIB = 1024 * 1024;

export interface Progress {
  /** Bytes done so far. */
  update(bytes: number): void;
  stop(): void;
}

/** A bar for `total` bytes of `label`; call `stop` on every way out. */
export function progress(output: Output, label: string, total: number): Progress {
  if (!output.interactive || total === 0) return { update: () => {}, stop: () => {} };
  const bar = new SingleBar(
    { format: `${label} {bar} {percentage}% {done} of {size} MiB, {eta_formatted} left`, stream: process.stderr, clearOnComplete: true },
    Presets.shades_classic,
  );
  bar.start(total, 0, { done: '0.0', size: mebibytes(total) });
  return { update: (bytes) => bar.update(bytes, { done: mebibytes(bytes) }), stop: () => bar.stop() };
}

function mebibytes(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
