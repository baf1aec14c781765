/**
 * One attempt of a client to find a direct path: a round with the device, inside the connection (PROTOCOL.md §6.6).
 *
 * 1. The candidates are gathered. The first list offers the round (POST, observed), each further one is an update
 *    (PUT). One request is under way at a time; changes meanwhile leave with the next.
 * 2. Each answer and notification of the device goes to the agent, which sends openers and checks.
 * 3. `onFound` is called for each pair that answers; `onEnd` when no more answers can come.
 *
 * It migrates nothing: the caller decides what to do with a pair.
 */

import type { Cancel } from '../../platform/environment.ts';
import type { CoapResponse } from '../../protocol/coap/index.ts';
import {
  CONTENT_FORMAT_CBOR,
  ConnectionPath,
  decodeRendezvousState,
  encodeRendezvousOffer,
  encodeRendezvousUpdate,
} from '../../protocol/control/index.ts';
import { SvcError } from '../../protocol/errors/index.ts';
import {
  Agent,
  type AgentView,
  type AttemptFacts,
  disabledByPeer,
  type NotDirect,
  notDirect,
  type Pair,
  type RoundBudget,
  reportOf,
} from '../../protocol/rendezvous/index.ts';
import type { Observation } from '../session/index.ts';
import { AgentRunner } from './agent-runner.ts';
import type { GatherReport } from './gatherer.ts';
import type { LocalEnd } from './local-end.ts';
import type { AskingSession } from './sessions.ts';
import type { StationView } from './station-view.ts';

const TAG_LENGTH = 8;
const KEY_LENGTH = 16;
/** ms for an answer of the device. */
const ANSWER_TIMEOUT = 5_000;
const CREATED = 201;
const CHANGED = 204;
const FORBIDDEN = 403;
const NOT_FOUND = 404;

/** The device's answer to the offer; `unknown`: it does not know the rendezvous, `silent`: no answer came. */
export type AttemptVerdict = 'open' | 'answered' | 'refused' | 'busy' | 'unknown' | 'silent';

export interface AttemptOptions {
  readonly session: AskingSession;
  readonly end: Pick<LocalEnd, 'host' | 'dispatcher' | 'gatherer'>;
  readonly station: StationView | null;
  /** A slot for the round; released when the attempt ends. */
  readonly budget: RoundBudget;
  /** Larger than any earlier round of the session. */
  readonly round: number;
  readonly hardNat: boolean;
  readonly onFound: (pair: Pair) => void;
  /** Called once, unless `stop` was called before. */
  readonly onEnd: () => void;
}

export class Attempt {
  verdict: AttemptVerdict = 'open';
  /** For the search: pairs that answered and were not tried yet, and what cancels the wait for more. */
  found: Pair[] = [];
  cancelChoice: Cancel = () => {};
  /** For the search: a pair that answered checks did not carry a full-size path challenge. */
  isLargeDropped = false;
  readonly #options: AttemptOptions;
  readonly #runner: AgentRunner;
  readonly #tag: Uint8Array;
  readonly #key: Uint8Array;
  readonly #cancelGathering: Cancel;
  readonly #abort = new AbortController();
  #observation: Observation | null = null;
  #gathered: GatherReport | null = null;
  #updating = false;
  #isStale = false;
  #sent: AgentView | null = null;
  #over = false;

  constructor(options: AttemptOptions) {
    const { session, station, budget, hardNat } = options;
    const { host, dispatcher, gatherer } = options.end;
    const { crypto, clock } = host.environment;
    this.#options = options;
    this.#tag = crypto.randomBytes(TAG_LENGTH);
    this.#key = crypto.randomBytes(KEY_LENGTH);
    const agent = new Agent(
      {
        crypto,
        tag: this.#tag,
        key: this.#key,
        role: 'client',
        budget,
        rtt: session.paths.rtt,
        hardNat,
        sprayReason: `${session.peer.fingerprint} ${gatherer.network(station)}`,
        isNear: (address) => gatherer.isNear(address),
        isUsable: (candidate) => gatherer.isUsable(candidate),
        reach: (address) => gatherer.reach(address),
      },
      clock.now(),
    );
    this.#runner = new AgentRunner({
      host,
      dispatcher,
      agent,
      tag: this.#tag,
      onEvent: (event) => {
        if (event.kind === 'answered') options.onFound(event.pair);
        else if (event.kind === 'changed') this.#sendNews();
        else this.#end();
      },
    });
    this.#cancelGathering = gatherer.gather(station, session.peer.verified !== 'none', (view) => {
      this.#gathered = view;
      this.#runner.with((each, now) => each.setLocal(view, now));
    });
  }

  /** For the search: handles the pairs that answer until then, in place of an earlier schedule. */
  chooseIn(time: number, run: () => void): void {
    this.cancelChoice();
    this.cancelChoice = this.#options.end.host.environment.clock.schedule(time, run);
  }

  /** Returns the path of a pair that answered; see `AgentRunner.pathOf`. */
  pathOf(pair: Pair): ReturnType<AgentRunner['pathOf']> {
    return this.#runner.pathOf(pair);
  }

  /** The agent predicted ports, and may predict better next time. */
  get isPredicting(): boolean {
    return this.#runner.agent.isPredicting(this.#now);
  }

  /** Addresses of the device that may still answer. */
  get openAddresses(): readonly string[] {
    return this.#runner.agent.round.checklist.pairs.filter(({ isOver }) => !isOver).map(({ remote }) => remote.address);
  }

  /** Returns the findings of the attempt so far. */
  facts(): AttemptFacts {
    const { round } = this.#runner.agent;
    return {
      isAnswered: this.verdict === 'answered',
      localNat: round.lists.nat(this.#now) ?? null,
      remoteNat: round.lists.remote?.nat ?? null,
      isStunSilent: this.#gathered?.isStunSilent ?? false,
      localCandidates: round.lists.local.candidates.length,
      remoteCandidates: round.lists.remote?.candidates.length ?? 0,
      pairs: round.checklist.pairs.map(reportOf),
      isLargeDropped: this.isLargeDropped,
      sprayFrom: this.#runner.agent.sprayFrom,
    };
  }

  /** Ends the attempt at both ends; `onEnd` is not called. Sockets that the host adopted stay open. */
  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelGathering();
    this.#abort.abort();
    this.#observation?.cancel();
    this.#runner.stop();
    this.#options.budget.release();
  }

  get #now(): number {
    return this.#options.end.host.environment.clock.now();
  }

  #end(): void {
    if (this.#over) return;
    this.stop();
    this.#options.onEnd();
  }

  /** Sends news to the device. */
  #sendNews(): void {
    if (this.#over) return;
    if (this.#observation === null) this.#offer();
    else if (this.verdict !== 'answered' || this.#updating) this.#isStale = true;
    else void this.#update();
  }

  #offer(): void {
    const { session, round } = this.#options;
    const view = this.#runner.agent.view(this.#now);
    const { number, candidates, nat } = view;
    this.#sent = view;
    const payload = encodeRendezvousOffer({ round, tag: this.#tag, key: this.#key, number, candidates, ...(nat && { nat }) });
    const request = { method: 'POST', path: ConnectionPath.RENDEZVOUS, contentFormat: CONTENT_FORMAT_CBOR, payload } as const;
    this.#observation = session.observe(
      { ...request, timeout: ANSWER_TIMEOUT },
      (response) => this.#answered(response),
      () => this.#ended(),
    );
  }

  #answered({ status, payload }: CoapResponse): void {
    if (this.#over) return;
    if (status !== CREATED) {
      this.verdict = status === FORBIDDEN ? 'refused' : status === NOT_FOUND ? 'unknown' : 'busy';
      this.#end();
      return;
    }
    try {
      this.#take(payload);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      this.#end();
    }
  }

  #take(payload: Uint8Array): void {
    const state = decodeRendezvousState(payload);
    const { session, budget } = this.#options;
    this.verdict = 'answered';
    // A device whose key is known is trusted to name only its own addresses.
    if (session.peer.verified !== 'none')
      for (const { address } of state.candidates) budget.trust(this.#options.end.gatherer.reach(address));
    this.#runner.with((agent, now) => agent.setRemote(state, now));
    if (this.#isStale && !this.#updating) void this.#update();
  }

  /** No answer came, or the device ended the round. */
  #ended(): void {
    if (this.#over) return;
    if (this.verdict === 'open') this.verdict = 'silent';
    // Found pairs are still checked; an attempt without a device ends by itself.
    if (this.verdict !== 'answered') this.#end();
  }

  async #update(): Promise<void> {
    const { session, round } = this.#options;
    const view = this.#runner.agent.view(this.#now);
    this.#isStale = false;
    if (isSame(view, this.#sent)) return;
    this.#sent = view;
    this.#updating = true;
    const granted = await session
      .request({
        method: 'PUT',
        path: ConnectionPath.RENDEZVOUS,
        contentFormat: CONTENT_FORMAT_CBOR,
        payload: encodeRendezvousUpdate({ round, ...view }),
        timeout: ANSWER_TIMEOUT,
        signal: this.#abort.signal,
      })
      .then(({ status }) => status === CHANGED)
      .catch(() => false);
    this.#updating = false;
    if (this.#over) return;
    if (view.spray === true) this.#runner.with((agent, now) => agent.sprayGranted(granted, now));
    if (this.#isStale) void this.#update();
  }
}

/** Returns whether the views differ in nothing that the device acts upon. */
function isSame(a: AgentView, b: AgentView | null): boolean {
  return b !== null && a.number === b.number && a.opened === b.opened && a.spray === b.spray;
}

/** Returns when the sprayed stage may begin, as far as an attempt has shown: 0 where it has not. */
export function sprayFrom(facts: AttemptFacts | undefined): number {
  const from = facts?.sprayFrom ?? 0;
  return from === Number.POSITIVE_INFINITY ? 0 : from;
}

/**
 * Returns what the device's answer alone explains. All may change: the client gets paired, a slot is freed, or the
 * network was silent.
 */
export function whyOf(verdict: AttemptVerdict): NotDirect | null {
  if (verdict === 'refused') return disabledByPeer;
  if (verdict === 'silent') return notDirect('PEER_TOO_OLD');
  return verdict === 'busy' ? notDirect('LIMITED') : null;
}
