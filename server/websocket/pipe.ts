/**
 * An accepted WebSocket of the library `ws` as a pipe of binary messages (RFC 6455).
 *
 * Text ends it with 1003, a message over 65,535 bytes with 1009, and too many fragments with 1008, as the library
 * itself does. So do excessive control frames: each costs an answer. The pipe does not wait for the peer's half of the
 * closing handshake.
 */
import type { WebSocket } from 'ws';
import type { MessagePipe } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/address.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { TokenBucket } from '../../protocol/token-bucket.ts';
import type { PipeHandlers } from '../station/web-sockets.ts';

/** Pings and pongs a second, and burst: a proxy sends one every few seconds. */
export const CONTROL_RATE = 2;
export const CONTROL_BURST = 20;
/** Bytes waiting for a peer that does not read, above which its pings get no answer. */
export const MAX_BUFFERED = 64 << 10;
/** Prefix of the library's error codes for what a peer may not send. */
const LIBRARY_ERROR = 'WS_ERR_';
/** RFC 6455 §7.4.1. */
const NORMAL_CLOSURE = 1000;
const UNSUPPORTED_DATA = 1003;
const POLICY_VIOLATION = 1008;

export class AcceptedPipe implements MessagePipe {
  readonly index: number;
  readonly address: string;
  readonly port: number;
  readonly proxy = null;
  readonly #webSocket: WebSocket;
  #isOpen = true;

  /** @param index of its socket in the environment */
  constructor(webSocket: WebSocket, index: number, { address, port }: SocketAddress) {
    this.index = index;
    this.address = address;
    this.port = port;
    this.#webSocket = webSocket;
  }

  /** Starts to deliver. @param now ms of a monotonic clock */
  listen({ receive, closed }: PipeHandlers, now: () => number): void {
    const control = new TokenBucket(CONTROL_RATE, CONTROL_BURST);
    let problem = '';
    let isViolation = false;
    const fail = (code: number, error: RemoteError): void => {
      if (!this.#isOpen) return;
      this.close(code);
      closed(error);
    };
    const onControl = (): boolean => {
      const isAllowed = control.take(1, now());
      if (!isAllowed) fail(POLICY_VIOLATION, new RemoteError('BAD_RESPONSE', 'too many pings over the WebSocket'));
      return isAllowed;
    };
    this.#webSocket.on('message', (data: Buffer, isBinary: boolean) => {
      if (!isBinary) fail(UNSUPPORTED_DATA, new RemoteError('BAD_RESPONSE', 'text over the WebSocket'));
      else if (this.#isOpen) receive(data);
    });
    this.#webSocket.on('ping', (data: Buffer) => {
      if (this.#isOpen && onControl() && this.#webSocket.bufferedAmount <= MAX_BUFFERED) this.#webSocket.pong(data);
    });
    this.#webSocket.on('pong', () => this.#isOpen && onControl());
    this.#webSocket.on('error', ({ message, code = '' }: NodeJS.ErrnoException) => {
      problem = `: ${message}`;
      isViolation = code.startsWith(LIBRARY_ERROR);
    });
    this.#webSocket.on('close', (code) =>
      fail(NORMAL_CLOSURE, new RemoteError(isViolation ? 'BAD_RESPONSE' : 'CLOSED', `the WebSocket ended with ${code}${problem}`)),
    );
  }

  send(message: Uint8Array, sent: () => void): void {
    // The library calls back for a closed WebSocket as well.
    this.#webSocket.send(message, { binary: true }, sent);
  }

  close(code: number = NORMAL_CLOSURE): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#webSocket.close(code);
  }
}
