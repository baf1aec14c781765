/**
 * Opens a WebSocket in a simulation: each step is a packet to the acceptor and one back, which decides whether and how
 * it continues.
 */

import type { Clock, MessagePipe, WebSocketOptions } from '../platform/environment.ts';
import { LocalError, RemoteError, type SvcError } from '../protocol/errors/index.ts';
import { NoUpgradeError } from '../protocol/station-dial/index.ts';
import type { SimulatedPipe } from './pipes.ts';
import type { WebSocketHandlers, WebSocketListenOptions, WebSocketUrl } from './web-socket.ts';

/** Bytes each way of SYN, of a TLS handshake, and of the upgrade. */
const SYN_SIZE = 60;
const TLS_SIZE = 1200;
const UPGRADE_SIZE = 400;

/** One opening WebSocket. */
export class Opening {
  /** As `network.openWebSocket` says. */
  readonly result: Promise<MessagePipe>;
  readonly #pipe: SimulatedPipe | null;
  readonly #url: WebSocketUrl;
  readonly #options: WebSocketOptions;
  readonly #listener: () => WebSocketListenOptions | undefined;
  #resolve!: (pipe: MessagePipe) => void;
  #reject!: (error: SvcError) => void;
  #settled = false;
  #release: () => void = () => {};

  /**
   * @param pipe null when nothing comes back from the address
   * @param listener on the port now
   */
  constructor(
    clock: Clock,
    pipe: SimulatedPipe | null,
    url: WebSocketUrl,
    options: WebSocketOptions,
    listener: () => WebSocketListenOptions | undefined,
  ) {
    this.#pipe = pipe;
    this.#url = url;
    this.#options = options;
    this.#listener = listener;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#limit(clock);
    if (pipe !== null && !this.#settled) this.#connect(pipe);
  }

  /** Applies timeout and signal. */
  #limit(clock: Clock): void {
    const { url, timeout, signal } = this.#options;
    const stop = (): void => this.#fail(new LocalError('STOPPED', 'opening the WebSocket was stopped'));
    if (signal?.aborted === true) {
      stop();
      return;
    }
    const cancel = clock.schedule(timeout, () => this.#fail(new RemoteError('TIMEOUT', `${url} did not answer within ${timeout} ms`)));
    signal?.addEventListener('abort', stop, { once: true });
    this.#release = () => {
      cancel();
      signal?.removeEventListener('abort', stop);
    };
  }

  #connect(pipe: SimulatedPipe): void {
    const refused = (): SvcError => new RemoteError('CONNECTION_REFUSED', `nothing listens at ${this.#options.url}`);
    pipe.failed = () => this.#fail(refused());
    const next = (): void => (this.#url.secure ? this.#startTls(pipe) : this.#upgrade(pipe));
    this.#exchange(pipe, SYN_SIZE, () => (this.#listener() === undefined ? refused() : null), next);
  }

  #startTls(pipe: SimulatedPipe): void {
    const { url, verifyCertificate = false } = this.#options;
    const check = (): SvcError | null => {
      const { secure = false, validCertificate = true } = this.#listener() ?? {};
      if (!secure) return new RemoteError('BAD_RESPONSE', `${url} answers without TLS`);
      if (verifyCertificate && !validCertificate)
        return new RemoteError('CERTIFICATE_VALIDATION_FAILED', `${this.#url.host} has a certificate that is not valid`);
      return null;
    };
    this.#exchange(pipe, TLS_SIZE, check, () => this.#upgrade(pipe));
  }

  /** The answer leaves before anything that `accept` has sent. */
  #upgrade(pipe: SimulatedPipe): void {
    pipe.flows.opener.send(UPGRADE_SIZE, () => {
      const answer = this.#accept(pipe);
      const refused = answer instanceof Error ? answer : null;
      pipe.flows.acceptor.send(UPGRADE_SIZE, () => (refused === null ? this.#open(pipe) : this.#fail(refused)));
      if (!(answer instanceof Error)) pipe.ends.acceptor.open(answer);
    });
  }

  /** Runs at the acceptor. */
  #accept(pipe: SimulatedPipe): WebSocketHandlers | SvcError {
    const { url, protocol } = this.#options;
    const listener = this.#listener();
    const refusal = (status: number): SvcError => new NoUpgradeError(status, `${url} answered ${status} in place of the upgrade`);
    if (listener === undefined || (listener.secure === true) !== this.#url.secure || listener.protocol !== protocol) return refusal(400);
    if (listener.path !== undefined && listener.path !== this.#url.path.split('?')[0]) return refusal(404);
    const answer = listener.accept(pipe.ends.acceptor, { path: this.#url.path });
    return typeof answer === 'number' ? refusal(answer) : answer;
  }

  #open(pipe: SimulatedPipe): void {
    if (this.#settled) return;
    const { receive, closed } = this.#options;
    this.#settled = true;
    this.#release();
    pipe.failed = () => {};
    pipe.ends.opener.open({ receive, closed });
    this.#resolve(pipe.ends.opener);
  }

  #exchange(pipe: SimulatedPipe, length: number, check: () => SvcError | null, next: () => void): void {
    pipe.flows.opener.send(length, () => {
      const error = check();
      pipe.flows.acceptor.send(length, () => {
        if (this.#settled) return;
        if (error === null) next();
        else this.#fail(error);
      });
    });
  }

  #fail(error: SvcError): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#release();
    this.#pipe?.reset('opener');
    this.#reject(error);
  }
}
