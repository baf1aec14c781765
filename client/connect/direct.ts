/**
 * The direct channel: addresses given by the application, each tried at once and independently; the first that
 * authenticates becomes the connection.
 *
 * Candidates may be added before and after `connect`. The channel fails once `end` has been called and every candidate
 * has failed; the error is NOT_FOUND when nothing answered.
 */

import type { Network } from '../../platform/environment.ts';
import { check, nonEmptyText, whole } from '../../protocol/arguments.ts';
import { asSvcError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { ConnectTarget, Host } from '../../runtime/host/index.ts';
import { type Attempt, type Failure, inOrder, mostTelling, Race } from '../../runtime/race.ts';
import type { Session } from '../../runtime/session/index.ts';

export interface Candidate {
  /** A name or numeric address. */
  readonly host: string;
  readonly port: number;
}

/** The candidates that the application adds. */
export class DirectCandidates {
  readonly #candidates: Candidate[] = [];
  #complete = false;
  #changed: (() => void) | null = null;

  /** @throws LocalError INVALID_ARGUMENT for port 0 or an empty host; INVALID_STATE after `end` */
  add(host: string, port: number): void {
    check('the host of a direct candidate', host, nonEmptyText);
    check('the port of a direct candidate', port, whole(1, 0xffff));
    if (this.#complete) throw new LocalError('INVALID_STATE', 'the direct candidates have ended');
    this.#candidates.push({ host, port });
    this.#changed?.();
  }

  end(): void {
    this.#complete = true;
    this.#changed?.();
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Calls back with each candidate, existing and later ones, and after every change. */
  follow(onCandidate: (candidate: Candidate) => void, onChange: () => void): void {
    let seen = 0;
    this.#changed = () => {
      while (seen < this.#candidates.length) onCandidate(this.#candidates[seen++] as Candidate);
      onChange();
    };
    this.#changed();
  }

  unfollow(): void {
    this.#changed = null;
  }
}

/** ms until a handshake is first repeated: candidates are mostly on the local network. */
export const FIRST_TIMEOUT = 250;

/** Connects to the first candidate that authenticates. @throws the channel's error */
export async function connectDirect(
  host: Host,
  network: Network,
  candidates: DirectCandidates,
  target: ConnectTarget & { signal: AbortSignal },
): Promise<Session> {
  const { signal } = target;
  const race = raceOf(host, (failures) => channelError(failures, signal));
  const stop = (): void => race.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const add = (candidate: Candidate): void => race.add(() => dialCandidate(host, network, candidate, target));
  candidates.follow(add, () => candidates.complete && race.end());
  try {
    return await race.result;
  } finally {
    candidates.unfollow();
    signal.removeEventListener('abort', stop);
  }
}

/** Dials all addresses of one candidate in parallel. */
function dialCandidate(host: Host, network: Network, { host: name, port }: Candidate, target: ConnectTarget): Attempt<Session> {
  const race = raceOf(host, (failures) => mostTelling(inOrder(failures)) ?? new RemoteError('DNS', `${name} has no address`));
  network.resolve(name).then(
    (addresses) => {
      for (const address of addresses) race.add(() => host.dials.start({ ...target, address, port, firstTimeout: FIRST_TIMEOUT }));
      race.end();
    },
    (error: unknown) => race.stop(asSvcError(error)),
  );
  return race;
}

/** A race of dials, all at once. @param summarize returns the error when all have failed */
export function raceOf(host: Host, summarize: (failures: readonly Failure[]) => SvcError): Race<Session> {
  return new Race({ environment: host.environment, delay: 0, discard: (session) => void session.close(), summarize });
}

function channelError(failures: readonly Failure[], signal: AbortSignal): SvcError {
  const error = mostTelling(failures.map((failure) => failure.error));
  if (error === null)
    return signal.aborted
      ? new LocalError('STOPPED', 'the direct connect was stopped')
      : new LocalError('NOT_FOUND', 'no direct candidate was given');
  if (error.code !== 'TIMEOUT') return error;
  return new RemoteError(
    'NOT_FOUND',
    'no address of the device answers: check the address, its port (5592 by default), and that the device runs',
    { cause: error },
  );
}
