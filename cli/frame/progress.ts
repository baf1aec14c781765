/** A progress bar for long transfers: on standard error, only at a terminal. Elsewhere it is silent. */
import { Presets, SingleBar } from 'cli-progress';
import type { Output } from './output.ts';

const MIB = 1024 * 1024;

export interface Progress {
  /** Bytes done so far. */
  update(bytes: number): void;
  /** Clears the line. */
  stop(): void;
}

/** A bar for `total` bytes of `label`, the first `done` of which were moved before; call `stop` in every case. */
export function progress(output: Output, label: string, total: number, done = 0): Progress {
  if (!output.interactive || total === 0) return { update: () => {}, stop: () => {} };
  const bar = new SingleBar(
    { format: `${label} {bar} {percentage}% {done} of {size} MiB, {eta_formatted} left`, stream: process.stderr, clearOnComplete: true },
    Presets.shades_classic,
  );
  bar.start(total, done, { done: mebibytes(done), size: mebibytes(total) });
  return { update: (bytes) => bar.update(bytes, { done: mebibytes(bytes) }), stop: () => bar.stop() };
}

/** An amount in words: bytes below a mebibyte. */
export function amount(bytes: number): string {
  return bytes < MIB ? `${bytes} bytes` : `${mebibytes(bytes)} MiB`;
}

/** The progress, in words. */
export function amountOf(done: number, total: number): string {
  return total < MIB ? `${done} of ${total} bytes` : `${mebibytes(done)} of ${mebibytes(total)} MiB`;
}

function mebibytes(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}
