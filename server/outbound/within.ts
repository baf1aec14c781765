/** A bound on work that cannot be stopped. */
import { RemoteError } from '../../protocol/errors/index.ts';
import type { Clock } from '../../transport/environment.ts';

/** What the work comes to. The work goes on when the time is over. @param time ms @throws RemoteError TIMEOUT */
export function within<T>(clock: Clock, time: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(time, () => reject(new RemoteError('TIMEOUT', 'no answer in time')));
    work.then(resolve, reject).finally(cancel);
  });
}
