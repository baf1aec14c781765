/**
 * Observers of the application's resources (RFC 7641), and their notifications.
 *
 *   registering ── 2.xx was answered ──▶ idle ── notify ──▶ due ── there is room ──▶ running ──▶ idle
 *        │                                                  ▲                          │
 *        │                                                  └── it changed meanwhile ──┘
 *        └── from every state: any other answer, cancelled, connection closed ──▶ no longer an observer
 *
 * 1. A notification is the answer of the resource's own handler, run again for each observer, so its decision to allow
 *    or refuse a client is made again. An answer other than 2.xx is the last (§4.2).
 * 2. Observers see the newest state, not each state (§1.3): changes while a handler runs, or while a notification waits
 *    for the channel, become one notification.
 * 3. Runs count as requests: without room under the device's limit they wait for one to end.
 * 4. Above the limits a request to observe is answered like any other, without Observe (§4.1).
 *
 * The connection's keep-alive checks that a peer is still there; the channel provides order and retransmission.
 */
import { check, textMap } from '../protocol/arguments.ts';
import { type CoapReply, type RoutedRequest, Status, textReply } from '../protocol/coap/index.ts';
import type { Session } from '../runtime/session/index.ts';

/** An application's resource, as returned by `addCoapResource`. */
export interface CoapResource {
  /** Current number of observers. */
  readonly observers: number;
  /**
   * Reports a change: runs the resource's handler once more for each observer and sends the answers. Cheap without
   * observers; consecutive calls count as one.
   * @param parameters limits this to observers of a path with these values of its `{name}` segments; default all
   * @throws LocalError INVALID_ARGUMENT, and nothing else
   */
  notify(parameters?: Readonly<Record<string, string>>): void;
  /**
   * Removes the resource: frees its path and answers its observers 4.04. Requests under way are still answered. Safe to
   * call again.
   */
  remove(): void;
}

/** Answers a request to the resource. Never rejects. */
export type Answer = (request: RoutedRequest<Session>) => Promise<CoapReply>;

/** The callbacks of the observers to the device. */
export interface ObserversOptions {
  /** Whether one more handler may run. */
  readonly hasRoom: () => boolean;
  /**
   * Calls back after everything settled so far has been processed: the answer to a registration has left before the
   * first notification.
   */
  readonly defer: (run: () => void) => void;
}

/** Observations of one connection. The rest of a peer's 64 open exchanges stay free for other requests. */
export const PER_CONNECTION = 32;
/** Observations of a device that sets no limit. */
export const PER_DEVICE = 1024;

interface Observer {
  readonly request: RoutedRequest<Session>;
  readonly resource: ObservedResource;
  state: 'registering' | 'idle' | 'due' | 'running' | 'ended';
  /** Whether the resource changed while no notification could be sent. */
  changed: boolean;
}

interface Peer {
  readonly observers: Map<number, Observer>;
  /** Stops listening to its session. */
  readonly forget: () => void;
}

/** The observers of one device. */
export class Observers {
  /** Observations at a time, over all connections. */
  limit = PER_DEVICE;
  readonly #options: ObserversOptions;
  readonly #peers = new Map<Session, Peer>();
  readonly #due = new Set<Observer>();
  #count = 0;

  constructor(options: ObserversOptions) {
    this.#options = options;
  }

  /** Creates an observable resource; `answer` runs its handler. */
  resource(answer: Answer): ObservedResource {
    return new ObservedResource(
      answer,
      (observer) => this.#changed(observer),
      (observer) => this.#end(observer),
    );
  }

  /** Answers a request to a resource, and registers the client if it asked to observe. */
  async serve(resource: ObservedResource, request: RoutedRequest<Session>): Promise<CoapReply> {
    const observer = this.#register(resource, request);
    const reply = await resource.answer(request);
    if (observer === undefined || isEnded(observer)) return reply;
    if (!isSuccess(reply)) {
      this.#remove(observer);
      return reply;
    }
    this.#options.defer(() => this.#idle(observer));
    return { ...reply, observe: true };
  }

  /** Runs due handlers while there is room. */
  resume(): void {
    for (const observer of this.#due) {
      if (!this.#options.hasRoom()) return;
      this.#due.delete(observer);
      void this.#run(observer);
    }
  }

  /** Registers before the handler runs, so that no change between its answer and the registration is missed. */
  #register(resource: ObservedResource, request: RoutedRequest<Session>): Observer | undefined {
    // A payload would have to be kept for every later run, and means nothing in a GET (RFC 7252 §5.8.1).
    if (!request.observe || request.payload.length > 0 || this.#count >= this.limit || !request.context.isOpen) return undefined;
    const peer = this.#peer(request.context);
    if (peer.observers.size >= PER_CONNECTION) return undefined;
    const observer: Observer = { request, resource, state: 'registering', changed: false };
    peer.observers.set(request.exchange, observer);
    resource.all.add(observer);
    this.#count++;
    return observer;
  }

  #peer(session: Session): Peer {
    const known = this.#peers.get(session);
    if (known !== undefined) return known;
    const observers = new Map<number, Observer>();
    const offCancelled = session.on('cancelled', (exchange) => this.#removed(observers.get(exchange)));
    const offClosed = session.on('closed', () => {
      for (const observer of [...observers.values()]) this.#remove(observer);
    });
    const forget = (): void => {
      offCancelled();
      offClosed();
    };
    const peer = { observers, forget };
    this.#peers.set(session, peer);
    return peer;
  }

  #changed(observer: Observer): void {
    if (observer.state === 'registering' || observer.state === 'running') {
      observer.changed = true;
    } else if (observer.state === 'idle') {
      observer.state = 'due';
      if (this.#due.size === 0) this.#options.defer(() => this.resume());
      this.#due.add(observer);
    }
  }

  #idle(observer: Observer): void {
    if (observer.state === 'ended') return;
    observer.state = 'idle';
    if (!observer.changed) return;
    observer.changed = false;
    this.#changed(observer);
  }

  async #run(observer: Observer): Promise<void> {
    const { request, resource } = observer;
    observer.state = 'running';
    const reply = await resource.answer(request);
    if (isEnded(observer)) return;
    const stands = isSuccess(reply);
    const sent = request.context.notify(request.exchange, stands ? { ...reply, observe: true } : reply);
    if (stands && sent) this.#idle(observer);
    else this.#remove(observer);
  }

  /** Notifies that the resource is gone (RFC 7641 §3.2). A first answer under way is left to its handler. */
  #end(observer: Observer): void {
    const { request, state } = observer;
    this.#remove(observer);
    if (state !== 'registering') request.context.notify(request.exchange, textReply(Status.NOT_FOUND, 'Not found'));
  }

  #removed(observer: Observer | undefined): void {
    if (observer !== undefined) this.#remove(observer);
  }

  #remove(observer: Observer): void {
    const { request, resource, state } = observer;
    if (state === 'ended') return;
    observer.state = 'ended';
    this.#due.delete(observer);
    resource.all.delete(observer);
    this.#count--;
    const peer = this.#peers.get(request.context);
    peer?.observers.delete(request.exchange);
    if (peer?.observers.size !== 0) return;
    peer.forget();
    this.#peers.delete(request.context);
  }
}

/** One resource and its observers. */
export class ObservedResource implements CoapResource {
  /** For `Observers`. */
  readonly all = new Set<Observer>();
  readonly answer: Answer;
  /** Removes it from its router. */
  removed: () => void = () => {};
  readonly #changed: (observer: Observer) => void;
  readonly #end: (observer: Observer) => void;

  constructor(answer: Answer, changed: (observer: Observer) => void, end: (observer: Observer) => void) {
    this.answer = answer;
    this.#changed = changed;
    this.#end = end;
  }

  get observers(): number {
    return this.all.size;
  }

  notify(parameters: Readonly<Record<string, string>> = {}): void {
    check('the parameters of a notification', parameters, textMap);
    const wanted = Object.entries(parameters);
    for (const observer of this.all) {
      const given = observer.request.parameters;
      if (wanted.every(([name, value]) => given[name] === value)) this.#changed(observer);
    }
  }

  remove(): void {
    this.removed();
    for (const observer of [...this.all]) this.#end(observer);
  }
}

function isSuccess({ status }: CoapReply): boolean {
  return status >= 200 && status < 300;
}

/** Whether the observer has ended. Check it after each await: the state may have changed meanwhile. */
function isEnded({ state }: Observer): boolean {
  return state === 'ended';
}
