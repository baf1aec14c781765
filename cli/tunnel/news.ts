/**
 * Events of tunnels, for a person one line each on standard error, with --json one document each.
 *
 * An outage is reported when it begins, again with the error of the first attempt to connect, and when it is over.
 * Refused connections are reported at once, then at most once per `PAUSE` for each service, with their number; lost
 * datagrams once a minute.
 */
import type { Connection, ForwardedService, ForwardingEvent, SvcError } from '../../client/node.ts';
import type { Clock } from '../../platform/environment.ts';
import { lossText } from '../../runtime/session/index.ts';
import { followWay, wayOf } from '../client/way.ts';
import { describe } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';

/** ms */
const PAUSE = 10_000;

const CRAMPED =
  'data that local programs have not read fills the memory of this process: new connections are slow until it is read, or some are closed';

type News = Exclude<ForwardingEvent, { kind: 'ended' }>;

export class TunnelNews {
  readonly #output: Output;
  readonly #device: string;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #refused = new Map<ForwardedService, { reportedAt: number; unreported: number }>();
  /** Losses of the connection, and failed connects, since it was last open. -1: it was never open. */
  #losses = -1;
  #rests = false;

  constructor(output: Output, device: string, clock: Pick<Clock, 'now'>) {
    this.#output = output;
    this.#device = device;
    this.#clock = clock;
  }

  report(event: News): void {
    if (event.kind === 'connected') this.#connected(event.connection);
    else if (event.kind === 'lost') this.#lost(event.error);
    else if (event.kind === 'refused') this.#reportRefused(event.service, event.error);
    else if (event.kind === 'datagrams-lost') this.#say({ event: event.kind, ...event.loss }, lossText(event.loss, 'the device'));
    else if (event.kind === 'cramped') this.#say({ event: 'cramped' }, CRAMPED);
    else if (event.kind === 'relieved') this.#say({ event: 'relieved' }, 'data that local programs have not read leaves memory again');
    else this.#reportRest(event);
  }

  /** Reports a rest once: it may get another reason, but remains the same rest. */
  #reportRest(event: Extract<News, { kind: 'resting' | 'resumed' }>): void {
    const rests = event.kind === 'resting';
    if (rests && !this.#rests) this.#say({ event: 'resting', error: event.error?.code }, `the connection rests: ${reasonOf(event.error)}`);
    if (!rests) this.#say({ event: 'resumed' }, 'the connection continues');
    this.#rests = rests;
  }

  #connected(connection: Connection): void {
    if (!this.#output.json) followWay(connection, (change) => this.#output.note(change));
    // The first connect needs no report.
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
      this.#say({ event: 'retrying', error: error?.code }, `not yet: ${error === null ? 'closed' : describe(error)}; trying until Ctrl-C`);
  }

  #reportRefused(service: ForwardedService, error: SvcError): void {
    const now = this.#clock.now();
    const state = this.#refused.get(service);
    if (state !== undefined && now - state.reportedAt < PAUSE) {
      state.unreported++;
      return;
    }
    const unreported = state?.unreported ?? 0;
    this.#refused.set(service, { reportedAt: now, unreported: 0 });
    const more = unreported === 0 ? '' : ` (and ${unreported} more before)`;
    const document = { event: 'refused', service: service.id, error: error.code, message: error.message, before: unreported };
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
