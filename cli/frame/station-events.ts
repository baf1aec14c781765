/**
 * What `svc basestation --json` prints of its devices and clients: the lines of its log about them, as events.
 *
 *     {"event": "attached", "device": "pr-1.de-1", "address": "…"}    also "detached", "joined"
 *     {"event": "refused", "request": "connect", "address": "…", "reason": "…"}    also "attach", "join", …
 *     {"event": "counted", …}    once a minute: how many there were of those that are not printed one by one
 *
 * Strangers cause refusals, so at most 20 are printed at once, then one every 3 seconds.
 */

import { type Clock, type Log, logOf } from '../../platform/environment.ts';
import { Rates } from '../../protocol/rates.ts';
import { SUMMARY } from '../../runtime/log-tally.ts';

const EVENTS: ReadonlyMap<string, string> = new Map([
  ['device attached', 'attached'],
  ['device attached again', 'attached'],
  ['device detached', 'detached'],
  ['device joined', 'joined'],
  [SUMMARY, 'counted'],
]);

/** Message of a refusal; the first word is what was refused. */
const REFUSED = /^(\w+) refused$/;

/** Refusals printed a second, and at once. */
export const REFUSALS = 1 / 3;
export const REFUSALS_AT_ONCE = 20;

/** Returns a log that also hands on the events. @param print gets each one, never more than strangers may cause */
export function stationEvents(log: Log, clock: Pick<Clock, 'now'>, print: (event: object) => void): Log {
  const refusals = new Rates(REFUSALS, REFUSALS_AT_ONCE);
  return logOf((level, message, fields) => {
    log[level](message, fields);
    const event = EVENTS.get(message);
    const [, request] = REFUSED.exec(message) ?? [];
    // A device that attaches again on its own channel is logged at debug.
    if (event !== undefined && level === 'info') print({ event, ...fields });
    else if (request !== undefined && refusals.take('', clock.now()) === 0) print({ event: 'refused', request, ...fields });
  });
}
