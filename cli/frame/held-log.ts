/** A log that holds messages back, so that a program's first output comes before the warnings of its start. */
import { type Log, logOf } from '../../platform/environment.ts';

export interface HeldLog extends Log {
  /** Logs the held messages, in order; later ones are logged at once. */
  release(): void;
}

/** Holds messages back until `release`. @param log receives them then */
export function heldLog(log: Log): HeldLog {
  let held: (() => void)[] | null = [];
  const holding = logOf((level, message, fields) => {
    if (held === null) log[level](message, fields);
    else held.push(() => log[level](message, fields));
  });
  const release = (): void => {
    const all = held ?? [];
    held = null;
    for (const write of all) write();
  };
  return { ...holding, release };
}
