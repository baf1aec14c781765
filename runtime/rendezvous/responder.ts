/**
 * The device's side of the rendezvous: `POST` and `PUT /p2p/rendezvous` of its clients (PROTOCOL.md §6.6). One round
 * per session; a new one replaces it. A round ends with its session, when the client no longer observes, and after 30
 * s.
 *
 * It sends only what the budgets allow, and answers only the client of a round.
 */

import type { BoundSocket, Cancel } from '../../platform/environment.ts';
import { type CoapReply, type RoutedRequest, Status, textReply } from '../../protocol/coap/index.ts';
import {
  CONTENT_FORMAT_CBOR,
  decodeRendezvousOffer,
  decodeRendezvousUpdate,
  encodeRendezvousState,
  type RendezvousOffer,
  type SocketAddress,
} from '../../protocol/control/index.ts';
import {
  Agent,
  type AttemptFacts,
  type HostBudget,
  type PeerClass,
  ROUND_LIFETIME,
  type RoundBudget,
  reportOf,
} from '../../protocol/rendezvous/index.ts';
import type { Session } from '../session/index.ts';
import { AgentRunner } from './agent-runner.ts';
import type { GatherReport } from './gatherer.ts';
import type { LocalEnd } from './local-end.ts';
import { FACTS_KEPT } from './paths-report.ts';
import type { ServingSession } from './sessions.ts';
import type { StationView } from './station-view.ts';

const TAG_LENGTH = 8;
const KEY_LENGTH = 16;
/** Seconds after which a client may try again when all rounds were taken. */
const BUSY_SECONDS = 5;

/** How far a client is trusted. */
export interface PeerTrust {
  readonly peer: PeerClass;
  /** Whether it may take part at all. */
  readonly isWelcome: boolean;
}

/** @typeParam S session of the device's host */
export interface ResponderOptions<S extends ServingSession = Session> {
  readonly end: Pick<LocalEnd, 'host' | 'dispatcher' | 'gatherer'>;
  readonly budget: HostBudget;
  readonly hardNat: boolean;
  /** Called at each round. */
  trustOf(session: S): PeerTrust;
  station(): StationView | null;
  /** Returns the address at which the station has seen the client of the session; undefined if it reported none. */
  peerAddress(session: S): SocketAddress | undefined;
}

interface RoundEntry {
  readonly round: number;
  readonly exchange: number;
  readonly offer: RendezvousOffer;
  readonly budget: RoundBudget;
  readonly tag: Uint8Array;
  readonly key: Uint8Array;
  readonly runner: AgentRunner;
  readonly stops: Cancel[];
  gathered: GatherReport | null;
  /** The first answer has left; notifications follow. */
  isAnswered: boolean;
}

/** State kept about the past rounds of a session. */
interface Past {
  /** The number of its newest round. */
  newest: number;
  /** Its last round found no slot. */
  isBusy: boolean;
  /** Findings of the last round; null also once the session has been direct for a while. */
  facts: AttemptFacts | null;
  /** Cancels the timer that drops the findings. */
  cancelForgetting: Cancel | null;
  /** Sockets that the host adopted for it. */
  adopted: Set<BoundSocket> | null;
}

export class RendezvousResponder<S extends ServingSession = Session> {
  /** Rounds refused for lack of a slot, and rounds that were no newer than the last. */
  readonly stats = { busy: 0, replayed: 0 };
  readonly #options: ResponderOptions<S>;
  readonly #rounds = new Map<S, RoundEntry>();
  readonly #past = new WeakMap<S, Past>();
  #closed = false;

  constructor(options: ResponderOptions<S>) {
    this.#options = options;
  }

  /** Serves `POST`. @throws RemoteError PARSE */
  begin({ context: session, payload, exchange, observe }: RoutedRequest<S>): CoapReply {
    const { peer, isWelcome } = this.#options.trustOf(session);
    if (!isWelcome || this.#closed) return textReply(Status.FORBIDDEN, 'No rendezvous with this device');
    const offer = decodeRendezvousOffer(payload);
    if (!observe) return textReply(Status.BAD_REQUEST, 'A rendezvous is observed');
    if (offer.round <= (this.#past.get(session)?.newest ?? -1)) {
      this.stats.replayed++;
      return textReply(Status.BAD_REQUEST, 'The round is not new');
    }
    this.end(session);
    const budget = this.#options.budget.acquireRound(peer, this.#now);
    if (budget === null) {
      this.stats.busy++;
      this.#pastOf(session).isBusy = true;
      return { ...textReply(Status.TOO_MANY_REQUESTS, 'Too many rounds'), maxAge: BUSY_SECONDS };
    }
    Object.assign(this.#pastOf(session), { newest: offer.round, isBusy: false });
    const ongoing = this.#start(session, exchange, offer, budget, peer);
    ongoing.isAnswered = true;
    return { ...this.#state(ongoing), observe: true };
  }

  /** Serves `PUT`. @throws RemoteError PARSE */
  update({ context: session, payload }: RoutedRequest<S>): CoapReply {
    const update = decodeRendezvousUpdate(payload);
    const ongoing = this.#rounds.get(session);
    if (ongoing === undefined || ongoing.round !== update.round) return textReply(Status.NOT_FOUND, 'No such round');
    const { tag, key } = ongoing.offer;
    let takesPart = true;
    ongoing.runner.with((agent, now) => {
      agent.setRemote({ tag, key, ...update }, now);
      if (update.spray === true) takesPart = agent.spray(now);
    });
    return takesPart ? { status: Status.CHANGED } : textReply(Status.FORBIDDEN, 'Not now');
  }

  /** The client no longer observes. */
  cancelled(session: S, exchange: number): void {
    if (this.#rounds.get(session)?.exchange === exchange) this.end(session);
  }

  /** Ends the round of a session, if there is one. */
  end(session: S): void {
    const ongoing = this.#rounds.get(session);
    if (ongoing === undefined) return;
    const facts = this.#factsOf(ongoing);
    // The client does not say why it uses none of the pairs that answered.
    const isUnused = session.paths.type === 'RELAY' && facts.pairs.some(({ state }) => state === 'answered');
    this.#remember(session, { ...facts, isLargeDropped: isUnused });
    this.#rounds.delete(session);
    for (const stop of ongoing.stops) stop();
    const last = this.#state(ongoing);
    ongoing.runner.stop();
    ongoing.budget.release();
    this.#review(session);
    // The last notification, without Observe; a client that no longer observes does not get it. Sent later, because a
    // send may bring in the next request.
    this.#options.end.host.environment.clock.soon(() => session.notify(ongoing.exchange, last));
  }

  /** Returns the findings of the session's round, or of its last one; null when there was none. */
  facts(session: S): AttemptFacts | null {
    const ongoing = this.#rounds.get(session);
    return ongoing === undefined ? (this.#past.get(session)?.facts ?? null) : this.#factsOf(ongoing);
  }

  /** The last round of the session was refused for lack of a slot. */
  wasBusy(session: S): boolean {
    return this.#past.get(session)?.isBusy ?? false;
  }

  isOngoing(session: S): boolean {
    return this.#rounds.has(session);
  }

  /** Ends all rounds; no further one begins. */
  close(): void {
    this.#closed = true;
    for (const session of [...this.#rounds.keys()]) this.end(session);
  }

  get #now(): number {
    return this.#options.end.host.environment.clock.now();
  }

  #pastOf(session: S): Past {
    let past = this.#past.get(session);
    if (past === undefined) {
      past = { newest: -1, isBusy: false, facts: null, cancelForgetting: null, adopted: null };
      this.#past.set(session, past);
    }
    return past;
  }

  /** Keeps a round's findings while the session is relayed, and for a moment after it has become direct. */
  #remember(session: S, facts: AttemptFacts): void {
    const past = this.#pastOf(session);
    past.facts = facts;
    past.cancelForgetting?.();
    past.cancelForgetting = null;
    if (!session.isOpen || session.paths.type === 'RELAY') return;
    // The timer holds no reference to the session.
    past.cancelForgetting = this.#options.end.host.environment.clock.schedule(FACTS_KEPT, () => {
      past.facts = null;
      past.cancelForgetting = null;
    });
  }

  #start(session: S, exchange: number, offer: RendezvousOffer, budget: RoundBudget, peer: PeerClass): RoundEntry {
    const { host, dispatcher, gatherer } = this.#options.end;
    const { clock, crypto } = host.environment;
    const [tag, key] = [crypto.randomBytes(TAG_LENGTH), crypto.randomBytes(KEY_LENGTH)];
    const reported = this.#options.peerAddress(session);
    if (reported !== undefined) budget.trust(gatherer.reach(reported.address));
    const agent = new Agent(this.#agentOptions(session, tag, key, budget), clock.now());
    const runner = new AgentRunner({
      host,
      dispatcher,
      agent,
      tag,
      onEvent: (event) => {
        if (event.kind === 'changed') this.#notify(session, ongoing);
      },
      onAdopted: (socket) => this.#keep(session, socket),
    });
    const ongoing: RoundEntry = {
      round: offer.round,
      exchange,
      offer,
      budget,
      tag,
      key,
      runner,
      stops: [],
      gathered: null,
      isAnswered: false,
    };
    this.#rounds.set(session, ongoing);
    const { round: _, ...lists } = offer;
    runner.with((each, now) => each.setRemote({ ...lists, opened: 0 }, now));
    const gathering = gatherer.gather(this.#options.station(), peer === 'known', (view) => {
      ongoing.gathered = view;
      runner.with((each, now) => each.setLocal(view, now));
    });
    const stopListening = session.on('closed', () => this.end(session));
    const stopObserving = session.on('cancelled', (cancelled) => this.cancelled(session, cancelled));
    const stopTimer = clock.schedule(ROUND_LIFETIME, () => {
      if (this.#rounds.get(session) === ongoing) this.end(session);
    });
    ongoing.stops.push(gathering, stopListening, stopObserving, stopTimer);
    return ongoing;
  }

  #agentOptions(session: S, tag: Uint8Array, key: Uint8Array, budget: RoundBudget): ConstructorParameters<typeof Agent>[0] {
    const { hardNat } = this.#options;
    const { host, gatherer } = this.#options.end;
    return {
      crypto: host.environment.crypto,
      tag,
      key,
      role: 'device',
      budget,
      rtt: session.paths.rtt,
      hardNat,
      sprayReason: `${session.peer.fingerprint} ${gatherer.network(this.#options.station())}`,
      isNear: (address) => gatherer.isNear(address),
      isUsable: (candidate) => gatherer.isUsable(candidate),
      reach: (address) => gatherer.reach(address),
    };
  }

  /** The host keeps the socket for a path of the session, as long as it carries one. */
  #keep(session: S, socket: BoundSocket): void {
    const past = this.#pastOf(session);
    if (past.adopted !== null) {
      past.adopted.add(socket);
      return;
    }
    past.adopted = new Set([socket]);
    session.on('path', () => this.#review(session));
    session.on('probed', () => this.#review(session));
    session.on('closed', () => this.#review(session));
  }

  /** Releases sockets that no longer carry a path; during a round the client may still begin to use one. */
  #review(session: S): void {
    const sockets = this.#past.get(session)?.adopted ?? null;
    if (sockets === null || this.#rounds.has(session)) return;
    const used = new Set(session.isOpen ? session.paths.all.filter(({ kind }) => kind === 'udp').map(({ socket }) => socket) : []);
    for (const socket of sockets) {
      if (used.has(socket.index)) continue;
      sockets.delete(socket);
      this.#options.end.host.release(socket);
    }
  }

  #notify(session: S, ongoing: RoundEntry): void {
    if (!ongoing.isAnswered || this.#rounds.get(session) !== ongoing) return;
    if (!session.notify(ongoing.exchange, { ...this.#state(ongoing), observe: true })) this.end(session);
  }

  #state({ tag, key, runner }: RoundEntry): CoapReply {
    const { number, candidates, nat, opened } = runner.agent.view(this.#now);
    const payload = encodeRendezvousState({ tag, key, number, candidates, opened, ...(nat && { nat }) });
    return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload };
  }

  #factsOf({ runner, gathered }: RoundEntry): AttemptFacts {
    const { round } = runner.agent;
    return {
      isAnswered: true,
      localNat: round.lists.nat(this.#now) ?? null,
      remoteNat: round.lists.remote?.nat ?? null,
      isStunSilent: gathered?.isStunSilent ?? false,
      localCandidates: round.lists.local.candidates.length,
      remoteCandidates: round.lists.remote?.candidates.length ?? 0,
      pairs: round.checklist.pairs.map(reportOf),
      isLargeDropped: false,
      sprayFrom: runner.agent.sprayFrom,
    };
  }
}
