/**
 * What happens to tunnels, for a person one line each on standard error, with --json one document each.
 *
 * An outage is told when it begins, once more with what the first attempt to connect failed with, and when it is over. Connections that are refused are told at
 * once, then at most once in `PAUSE` for each service, with how many there were.
 */
import type { Connection, ForwardedService, ForwardingEvent, SvcError } from '../../client/node.ts';
import type { Clock } from '../../transport/environment.ts';
import { followWay, wayOf } from '../client/way.ts';
import { describe } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';

/** ms */
const PAUSE = 10_000;

type News = Exclude<ForwardingEvent, { kind: 'ended' }>;

export class TunnelNews {
  readonly #output: Output;
  readonly #device: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #refused = new Map<ForwardedService, { toldAt: number; untold: number }>();
  /** Times that the connection was lost, or not made, since it stood. -1: it has not stood yet. */
  #losses = -1;
  #rests = false;

  constructor(output: Output, device: string, clock: Pick<Clock, 'now'>) {
    this.#output = output;
    this.#device = device;
    this.#clock = clock;
  }

  tell(event: News): void {
    if (event.kind === 'connected') this.#connected(event.connection);
    else if (event.kind === 'lost') this.#lost(event.error);
    else if (event.kind === 'refused') this.#tellRefused(event.service, event.error);
    else this.#tellRest(event);
  }

  /** A rest may have another reason after the first one, and is the same rest. */
  #tellRest(event: Extract<News, { kind: 'resting' | 'resumed' }>): void {
    const rests = event.kind === 'resting';
    if (rests && !this.#rests) this.#say({ event: 'resting', error: event.error?.code }, `the connection rests: ${reasonOf(event.error)}`);
    if (!rests) this.#say({ event: 'resumed' }, 'the connection continues');
    this.#rests = rests;
  }

  #connected(connection: Connection): void {
    if (!this.#output.json) followWay(connection, (change) => this.#output.note(change));
    // That it stands at the beginning is known.
    if (this.#losses >= 0) {
      const { over, text } = wayOf(connection);
      this.#say({ event: 'connected', over }, `connected to ${this.#device} again, ${text}`);
    }
    this.#losses = 0;
  }

  #lost(error: SvcError | null): void {
    this.#rests = false;
    this.#losses = Math.max(0, this.#losses) + 1;
    if (this.#losses === 1)
      this.#say({ event: 'lost', error: error?.code }, `the connection to ${this.#device} ended: ${reasonOf(error)}; connecting again`);
    else if (this.#losses === 2)
      this.#say(
        { event: 'retrying', error: error?.code },
        `not yet: ${error === null ? 'closed' : describe(error)}; it is tried until Ctrl-C`,
      );
  }

  #tellRefused(service: ForwardedService, error: SvcError): void {
    const now = this.#clock.now();
    const state = this.#refused.get(service);
    if (state !== undefined && now - state.toldAt < PAUSE) {
      state.untold++;
      return;
    }
    const untold = state?.untold ?? 0;
    this.#refused.set(service, { toldAt: now, untold: 0 });
    const more = untold === 0 ? '' : ` (and ${untold} more before)`;
    const document = { event: 'refused', service: service.id, error: error.code, message: error.message, before: untold };
    this.#say(document, `${service.id}: a connection was refused: ${error.message}${more}`);
  }

  #say({ event, ...fields }: { event: string } & Record<string, unknown>, text: string): void {
    if (this.#output.json) this.#output.result({ event, device: this.#device, ...fields }, text);
    else this.#output.note(text);
  }
}

function reasonOf(error: SvcError | null): string {
  return error?.message ?? 'it was closed';
}
