/**
 * The direct channel: addresses given by the application, each tried at once and on its own; the first that authenticates is the connection.
 *
 * Candidates may be added before and after `connect`. The channel has failed when it was told that no more come and all of them failed; the
 * error is NOT_FOUND when nothing answered (reference §4.3).
 */
import { asSvcError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Network } from '../../transport/environment.ts';
import type { ConnectTarget, Host } from '../../transport/host/index.ts';
import type { Session } from '../../transport/session/index.ts';

export interface Candidate {
  /** Name or numeric address. */
  readonly host: string;
  readonly port: number;
}

/** The list the application fills. */
export class DirectCandidates {
  readonly #candidates: Candidate[] = [];
  #complete = false;
  #changed: (() => void) | null = null;

  /** @throws LocalError INVALID_ARGUMENT for port 0 or an empty host; INVALID_STATE after `end` */
  add(host: string, port: number): void {
    if (this.#complete) throw new LocalError('INVALID_STATE', 'the direct candidates have ended');
    if (!Number.isInteger(port) || port < 1 || port > 0xffff)
      throw new LocalError('INVALID_ARGUMENT', 'the port of a direct candidate is a number from 1 to 65535');
    if (host === '') throw new LocalError('INVALID_ARGUMENT', 'a direct candidate needs a host');
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

  /** Calls back with each candidate, those there already and those to come, and after every change. */
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
const FIRST_TIMEOUT = 250;

/** Connects to the first candidate that authenticates. @throws the channel's error */
export function connectDirect(
  host: Host,
  network: Network,
  candidates: DirectCandidates,
  target: ConnectTarget & { signal: AbortSignal },
): Promise<Session> {
  return new Promise((resolve, reject) => {
    const failures: unknown[] = [];
    let running = 0;
    let won = false;
    const failWhenDone = () => {
      if (target.signal.aborted || (candidates.complete && running === 0)) {
        candidates.unfollow();
        reject(channelError(failures, target.signal));
      }
    };
    const attempt = async (candidate: Candidate) => {
      running++;
      try {
        const session = await connectCandidate(host, network, candidate, target);
        // Nobody takes one that comes too late.
        if (won || target.signal.aborted) return await session.close();
        won = true;
        candidates.unfollow();
        resolve(session);
      } catch (error) {
        failures.push(error);
      } finally {
        running--;
        failWhenDone();
      }
    };
    target.signal.addEventListener('abort', failWhenDone, { once: true });
    candidates.follow(attempt, failWhenDone);
  });
}

/** All addresses of one candidate, side by side. The attempts that lose are stopped. */
async function connectCandidate(
  host: Host,
  network: Network,
  { host: name, port }: Candidate,
  target: ConnectTarget & { signal: AbortSignal },
): Promise<Session> {
  const addresses = await network.resolve(name);
  const rest = new AbortController();
  const signal = AbortSignal.any([target.signal, rest.signal]);
  try {
    return await firstOf(addresses.map((address) => host.connect({ ...target, address, port, firstTimeout: FIRST_TIMEOUT, signal })));
  } finally {
    rest.abort();
  }
}

/** The first session; later ones are closed. With none, the error that says most. */
async function firstOf(attempts: readonly Promise<Session>[]): Promise<Session> {
  try {
    const winner = await Promise.any(attempts);
    for (const attempt of attempts) attempt.then((session) => (session === winner ? undefined : session.close())).catch(() => {});
    return winner;
  } catch (error) {
    throw mostTelling((error as AggregateError).errors);
  }
}

function channelError(failures: readonly unknown[], signal: AbortSignal): SvcError {
  if (failures.length === 0)
    return signal.aborted
      ? new LocalError('STOPPED', 'the direct connect was stopped')
      : new LocalError('NOT_FOUND', 'no direct candidate was given');
  const error = mostTelling(failures);
  if (error.code !== 'TIMEOUT') return error;
  return new RemoteError('NOT_FOUND', 'no direct candidate answers: check the address and that the device runs', { cause: error });
}

/** The error that says most: a wrong key first, then whatever is not silence. */
function mostTelling(failures: readonly unknown[]): SvcError {
  return failures.map(asSvcError).sort((a, b) => rank(a) - rank(b))[0] as SvcError;
}

function rank(error: SvcError): number {
  return { FINGERPRINT_MISMATCH: 0, TIMEOUT: 2, STOPPED: 3 }[error.code] ?? 1;
}
