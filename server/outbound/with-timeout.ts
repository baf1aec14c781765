/** A time limit for work that cannot be cancelled. */

import type { Clock } from '../../platform/environment.ts';
import { RemoteError } from '../../protocol/errors/index.ts';

/** Settles as `work`, or rejects with TIMEOUT after `time` ms; `work` is not cancelled. @throws RemoteError TIMEOUT */
export function withTimeout<T>(clock: Clock, time: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(time, () => reject(new RemoteError('TIMEOUT', 'no answer in time')));
    work.then(resolve, reject).finally(cancel);
  });
}
