/** The clock of Node. Timers do not keep the process alive; open sockets do, until their owner closes them. */
import type { Clock } from '../environment.ts';

/** Longest delay of `setTimeout`, ms. */
const MAX_DELAY = 2 ** 31 - 1;

const settled = Promise.resolve();

/** As `Environment.keepProcess`: a timer without effect. */
export function keepProcess(): () => void {
  const timer = setInterval(() => {}, MAX_DELAY);
  return () => clearInterval(timer);
}

/** Seconds of the machine's clock when this module was loaded, so that times are small numbers. */
const [ORIGIN] = process.hrtime();

export const clock: Clock = {
  now,
  wallTime: () => Date.now(),
  schedule(delay, run) {
    if (delay === Number.POSITIVE_INFINITY) return () => {};
    let timer: NodeJS.Timeout;
    const wait = (rest: number): void => {
      const next = rest > MAX_DELAY ? () => wait(rest - MAX_DELAY) : run;
      // Node rounds fractions down; a timer that fires early is merely set again.
      timer = setTimeout(next, Math.min(Math.ceil(rest), MAX_DELAY)).unref();
    };
    wait(Math.max(0, delay || 0));
    return () => clearTimeout(timer);
  },
  defer: (run) => void setImmediate(run),
  // Ticks run before promise callbacks, except ticks that a promise callback queues.
  soon: (run) => void settled.then(() => process.nextTick(run)),
};

/** As `performance.now`, which is slower, and whose first call makes Node load a dozen modules. */
function now(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return (seconds - ORIGIN) * 1_000 + nanoseconds / 1_000_000;
}
