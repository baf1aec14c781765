/**
 * One authenticated connection as an application holds it: CoAP requests both ways, byte streams, datagrams.
 * Made by `Host`; the same class on a client, a device and a base station.
 */
import type { CoapRequest, CoapResponse, Router } from '../../protocol/coap/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import type { IncomingStream } from './incoming-stream.ts';
import type { SessionStream } from './stream.ts';

export interface SessionRequest extends CoapRequest {
  /** ms until TIMEOUT, default 120,000 */
  timeout?: number;
  /** abort: STOPPED */
  signal?: AbortSignal;
}

export interface Observation {
  /** Stops; nothing is delivered afterwards. */
  cancel(): void;
}

export interface KeepAlive {
  interval: number;
  retryInterval: number;
  maxRetries: number;
}

export interface SessionEvents {
  /** once; null when this end closed, else why it ended */
  closed: SvcError | null;
}

export class Session {
  /** Serves what the peer asks; context is this session. Without one every request is answered 4.04. */
  router: Router<Session> | null = null;
  /** Called for every stream the peer opens; while it is null they are refused. */
  onStream: ((stream: IncomingStream) => void) | null = null;
  /** Called for every datagram; while it is null they are dropped. */
  onDatagram: ((data: Uint8Array) => void) | null = null;

  get initiator(): boolean {
    throw new Error('not there yet');
  }
  /** Full hex fingerprint of our identity in this session. */
  get localFingerprint(): string {
    throw new Error('not there yet');
  }
  get remoteFingerprint(): string {
    throw new Error('not there yet');
  }
  get verified(): 'pinned' | 'password' | 'none' {
    throw new Error('not there yet');
  }
  /** Path now in use; may change, so read it each time. */
  get path(): Path {
    throw new Error('not there yet');
  }
  /** The path now in use is local (protocol.md §6). Evaluated at each read: do not keep it. */
  get isLocal(): boolean {
    throw new Error('not there yet');
  }
  get type(): 'RELAY' | 'DIRECT' {
    throw new Error('not there yet');
  }
  /** What the responder said of itself in message 2 (a device: ProductId, DeviceId). */
  get info(): Readonly<Record<string, unknown>> {
    throw new Error('not there yet');
  }
  get handshakeHash(): Uint8Array {
    throw new Error('not there yet');
  }
  /** Name we answered to, or asked for: 'station', 'device', 'device:<p>.<d>' */
  get isOpen(): boolean {
    throw new Error('not there yet');
  }
  /** Resolves (never rejects) when the session has ended: null when this end closed, else why. */
  get closed(): Promise<SvcError | null> {
    throw new Error('not there yet');
  }
  /**
   * Sends one request; resolves with any response, 4.xx and 5.xx included.
   * @throws LocalError TIMEOUT, STOPPED (signal), NOT_CONNECTED (session over before), CLOSED (session ended meanwhile), INVALID_ARGUMENT
   */
  request(request: SessionRequest): Promise<CoapResponse> {
    void request;
    throw new Error('not there yet');
  }
  /** Observes (RFC 7641). `onResponse` gets each notification; `onEnd` once when no more will come (error, or null after a final response). */
  observe(request: SessionRequest, onResponse: (response: CoapResponse) => void, onEnd?: (error: SvcError | null) => void): Observation {
    void [request, onResponse, onEnd];
    throw new Error('not there yet');
  }
  /**
   * Opens a byte stream; resolves when the peer accepted it.
   * @throws LocalError STOPPED (refused, limit, signal), NOT_CONNECTED
   */
  openStream(port: number, options?: { signal?: AbortSignal }): Promise<SessionStream> {
    void [port, options];
    throw new Error('not there yet');
  }
  /** Sends a datagram, unreliable; false when it was not taken. */
  sendDatagram(data: Uint8Array): boolean {
    void data;
    throw new Error('not there yet');
  }
  /** Listens; returns the function that stops listening. A listener that throws is logged and disturbs nobody. */
  on<K extends keyof SessionEvents>(event: K, listener: (value: SessionEvents[K]) => void): () => void {
    void [event, listener];
    throw new Error('not there yet');
  }
  /** Changes the keep-alive numbers (an attach answer sets them). */
  setKeepAlive(keepAlive: KeepAlive): void {
    void keepAlive;
    throw new Error('not there yet');
  }
  /** A successful password exchange or pairing: the session now counts as verified that way. */
  setVerified(verified: 'pinned' | 'password'): void {
    void verified;
    throw new Error('not there yet');
  }
  /** Closes; what is open on it fails. Resolves when the close was sent; calling again is harmless. */
  close(code?: number, reason?: string): Promise<void> {
    void [code, reason];
    throw new Error('not there yet');
  }
  stats(): Readonly<Record<string, number>> {
    throw new Error('not there yet');
  }
}
