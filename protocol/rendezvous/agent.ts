/**
 * One end's agent in an attempt to find a direct path, sans-IO: a round, followed by the sprayed stage where a NAT
 * assigns random ports (PROTOCOL.md §6). Client and device run the same code; the role decides which of them requests
 * the sprayed stage.
 *
 *   gathering ── lists ──▶ checking ── no pair for a while, one NAT random, the other independent ──▶ spraying ──▶ over
 *
 * The sprayed stage, for ends H (random) and E (independent mapping):
 *
 * 1. H opens further sockets (event `sockets`), and each sends an opener to E's address.
 * 2. E sends checks to random ports of H's address. One that hits a mapping of H is answered, and checked in return: a
 *    pair.
 *
 * The client requests it (`spray` of its update) when its own part is ready: with the openers sent if it is H, else
 * before its first check.
 *
 * Usage: after each call `transmit` until null, `nextEvent` until null, then `nextTimeout`. Having nothing more to send
 * may end a stage, and so cause an event.
 */
import type { NatReport, RendezvousState, RendezvousUpdate, SocketAddress } from '../control/index.ts';
import type { LocalView } from './lists.ts';
import { Round, type RoundEvent, type RoundOptions, type RoundPacket } from './round.ts';
import { ROUND_LIFETIME } from './round-budget.ts';
import { SPRAY_INTERVAL, SPRAY_PORTS, SPRAY_SOCKETS } from './spray.ts';
import { fromSockets, toRandomPorts, Volley, type VolleyPlan } from './volley.ts';

/** Hop limit of the openers of the sprayed stage: in front of a provider's NAT ports are random, too. */
const SOCKET_HOPS = 4;
/** Duration of a spray, ms. */
const SPRAY_TIME = SPRAY_PORTS * SPRAY_INTERVAL;
/**
 * ms without a pair, after both ends have opened, until the sprayed stage begins: an address behind a mere filter has
 * answered by then.
 */
const PATIENCE = 600;
/**
 * ms between the openers of the sockets, and from the request to the client's first check: the peer's openers leave
 * meanwhile.
 */
const OPENER_PACE = 1;
const GRANT_WAIT = 400;
/** ms in which predicted ports must answer, after both ends have opened. */
const PREDICTED_TIME = 1_800;
/**
 * ms in which the peer must find us, after both have opened; and from the beginning, if it does not report that it has
 * opened.
 */
const PEER_TIME = 2_000;
const SILENT_TIME = 8_000;
/** ms to wait for the last answers. */
const LINGER = 1_000;

/**
 * `sockets`: open `count` further sockets, numbered from 1, and call `socketsOpened`. `exhausted`: nothing of this
 * round can answer any longer. `changed`: send the `view` to the peer.
 */
export type AgentEvent = RoundEvent | { readonly kind: 'sockets'; readonly count: number } | { readonly kind: 'exhausted' };

export interface AgentOptions extends RoundOptions {
  /** False: no sprayed stage at this end. */
  readonly hardNat: boolean;
  /** Identifies the peer and the network: a repeated sprayed stage would find the same (`RoundBudget.acquireSpray`). */
  readonly sprayReason: string;
}

/** The update for the peer; only the client's has `spray`. */
export type AgentView = Omit<RendezvousUpdate, 'round'>;

type HardPart = 'sockets' | 'spray';

export class Agent {
  readonly #options: AgentOptions;
  readonly round: Round;
  readonly #events: AgentEvent[] = [];
  readonly #deadline: number;
  #volley: Volley | null = null;
  #stage: 'checks' | 'asked' | 'ready' | 'running' | 'done' | 'refused' = 'checks';
  /** When both ends had opened. */
  #bothOpenedAt = Number.POSITIVE_INFINITY;
  #overAt = Number.POSITIVE_INFINITY;
  #exhausted = false;
  #sprayFrom: number | null = null;

  constructor(options: AgentOptions, now: number) {
    this.#options = options;
    this.round = new Round(options, now);
    this.#deadline = now + ROUND_LIFETIME;
  }

  /** Whether the end requested, or takes part in, the sprayed stage. */
  get isSpraying(): boolean {
    return this.#stage !== 'checks' && this.#stage !== 'refused';
  }

  /** When this host may begin the sprayed stage, if that would be next (`RoundBudget.sprayFrom`); else null. */
  get sprayFrom(): number | null {
    return this.#sprayFrom;
  }

  /** Returns the current update for the peer. */
  view(now: number): AgentView {
    const { lists } = this.round;
    const nat = lists.nat(now);
    const spray = this.#options.role === 'client' && (this.#stage === 'ready' || this.#stage === 'running');
    return { number: lists.number, candidates: lists.local.candidates, opened: lists.opened, ...(nat && { nat }), ...(spray && { spray }) };
  }

  setLocal(local: LocalView, now: number): void {
    this.round.setLocal(local, now);
    this.#look(now);
  }

  setRemote(remote: RendezvousState, now: number): void {
    this.round.setRemote(remote, now);
    this.#look(now);
  }

  /** Device: the client requests the sprayed stage. @returns false when this end does not take part in it */
  spray(now: number): boolean {
    if (this.#stage !== 'checks') return this.isSpraying;
    const part = this.#hardPart(now);
    if (part === null || !this.#begin(part, now)) {
      this.#stage = 'refused';
      return false;
    }
    if (part === 'spray') this.#startSpray(now);
    return true;
  }

  /** Client: the device has answered the update that requested the sprayed stage. */
  sprayGranted(granted: boolean, now: number): void {
    if (this.#stage !== 'ready' && this.#stage !== 'asked') return;
    if (!granted) this.#refuse();
    else if (this.#hardPart(now) === 'spray') this.#startSpray(now + GRANT_WAIT);
    else {
      this.#stage = 'running';
      this.#overAt = Math.min(this.#deadline, now + SPRAY_TIME + GRANT_WAIT + LINGER);
    }
  }

  /** Call with the number of requested sockets that are open; 0: none. */
  socketsOpened(count: number, now: number): void {
    const target = this.#target();
    if (count === 0 || target === null) {
      this.#refuse();
      return;
    }
    this.#volley = this.#newVolley(fromSockets(count, target, OPENER_PACE, now), SOCKET_HOPS);
  }

  /** Processes any STUN answer. @returns whether it is a valid answer to one of our checks */
  receiveAnswer(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): boolean {
    const target = this.#target();
    if (this.#volley !== null && from.address === target?.address && this.#volley.isAnswered(datagram)) {
      this.#options.budget.answered(from.address);
      // It has answered one of many packets, and is checked immediately.
      this.round.checklist.add('peer-reflexive', from, socket, 0)?.hear(now);
      return true;
    }
    return this.round.receiveAnswer(datagram, from, socket, now) !== null;
  }

  transmit(now: number): RoundPacket | null {
    const packet = this.round.transmit(now) ?? this.#transmitVolley(now);
    // The last packet may end a stage, and the last abandoned check the round.
    if (packet === null) this.#look(now);
    return packet;
  }

  nextEvent(): AgentEvent | null {
    return this.#events.shift() ?? this.round.nextEvent();
  }

  nextTimeout(): number {
    if (this.#exhausted) return this.round.nextTimeout();
    const volley = this.#volley?.nextTimeout() ?? Number.POSITIVE_INFINITY;
    return Math.min(this.round.nextTimeout(), volley, this.#sprayAt(), this.#endsAt);
  }

  handleTimeout(now: number): void {
    this.#look(now);
    if (now >= this.#endsAt) this.#exhaust();
  }

  /** Ends the attempt: nothing is sent or answered from now on. */
  end(): void {
    this.#exhausted = true;
    this.#volley = null;
    this.round.end();
  }

  /** Returns whether the ports of at least one end are predicted, and none is random. */
  isPredicting(now: number): boolean {
    const nats = this.nats(now);
    const mappings = [nats?.local.mapping, nats?.remote.mapping];
    return mappings.includes('sequential') && !mappings.includes('random');
  }

  /** Returns both NATs, when each end knows its own. */
  nats(now: number): { readonly local: NatReport; readonly remote: NatReport } | null {
    const [local, remote] = [this.round.lists.nat(now), this.round.lists.remote?.nat];
    return local === undefined || remote === undefined ? null : { local, remote };
  }

  #transmitVolley(now: number): RoundPacket | null {
    const volley = this.#volley;
    if (volley === null || now < volley.nextTimeout()) return null;
    const packet = volley.transmit(now);
    // A packet above the rate is skipped, and its port not tried.
    const isFree = packet?.hopLimit !== undefined || this.#options.budget.takeSpray(packet?.to.address ?? '', now) === 'granted';
    return isFree ? packet : this.#transmitVolley(now);
  }

  #look(now: number): void {
    const { remote, opened, number } = this.round.lists;
    if (remote !== null && opened === remote.number && remote.opened >= number) this.#bothOpenedAt = Math.min(this.#bothOpenedAt, now);
    if (this.isPredicting(now)) this.#overAt = Math.min(this.#overAt, this.#bothOpenedAt + PREDICTED_TIME);
    if (this.#sprayAt() <= now) this.#askSpray(now);
    if (this.#volley?.isOut === true) this.#volleyOut(now);
  }

  /** When a client gives up; with a pair, or as a device, it waits for the next step. */
  get #endsAt(): number {
    const waits = this.#exhausted || this.round.checklist.hasAnswer || this.#options.role === 'device';
    return waits ? Number.POSITIVE_INFINITY : Math.min(this.#overAt, this.#deadline, this.#idleUntil);
  }

  /**
   * Until when to wait for the peer to find us, once no pair of our own is left. Infinity while there is something to
   * do here.
   */
  get #idleUntil(): number {
    const isIdle = this.round.isExhausted && !this.isSpraying && this.#sprayAt() === Number.POSITIVE_INFINITY;
    if (!isIdle) return Number.POSITIVE_INFINITY;
    return Math.min(this.#bothOpenedAt + PEER_TIME, this.#deadline - ROUND_LIFETIME + SILENT_TIME);
  }

  #exhaust(): void {
    if (this.#exhausted || this.#options.role === 'device') return;
    this.#exhausted = true;
    this.#events.push({ kind: 'exhausted' });
  }

  /** Returns when the client requests the sprayed stage; Infinity: not in the current state. */
  #sprayAt(): number {
    const [{ role }, { hasAnswer }] = [this.#options, this.round.checklist];
    const isDue = role === 'client' && this.#stage === 'checks' && !hasAnswer && this.#bothOpenedAt < Number.POSITIVE_INFINITY;
    return isDue && this.#hardPart(this.#bothOpenedAt) !== null ? this.#bothOpenedAt + PATIENCE : Number.POSITIVE_INFINITY;
  }

  #askSpray(now: number): void {
    const part = this.#hardPart(now);
    if (part === null || !this.#begin(part, now)) this.#stage = 'refused';
    else if (part === 'spray') this.#ready();
  }

  /** Cancels the stage that had begun. */
  #refuse(): void {
    this.#stage = 'refused';
    this.#options.budget.cancelSpray();
  }

  /** @returns false when the host may not do that now */
  #begin(part: HardPart, now: number): boolean {
    const { budget, sprayReason } = this.#options;
    const { address } = this.#target()!;
    this.#sprayFrom = budget.acquireSpray(address, sprayReason, now) ? null : budget.sprayFrom(address, sprayReason, now);
    if (this.#sprayFrom !== null) return false;
    this.#stage = 'asked';
    this.#overAt = Math.min(this.#deadline, now + SPRAY_TIME + 2 * GRANT_WAIT + LINGER);
    if (part === 'sockets') this.#events.push({ kind: 'sockets', count: SPRAY_SOCKETS });
    return true;
  }

  #ready(): void {
    this.#stage = 'ready';
    this.#events.push({ kind: 'changed' });
  }

  #startSpray(at: number): void {
    const target = this.#target();
    if (target === null) return;
    this.#stage = 'running';
    this.#volley = this.#newVolley(toRandomPorts(target.address, (length) => this.#options.crypto.randomBytes(length), at));
  }

  #volleyOut(now: number): void {
    if (this.#stage === 'asked') {
      if (this.#options.role === 'client') this.#ready();
      else this.#stage = 'running';
    } else if (this.#stage === 'running' && this.#hardPart(now) === 'spray') {
      this.#stage = 'done';
      this.#overAt = Math.min(this.#overAt, now + LINGER);
    }
  }

  #newVolley(plan: VolleyPlan, hopLimit?: number): Volley {
    const { tag, key } = this.round.lists.remote!;
    return new Volley({ crypto: this.#options.crypto, tag, key, plan, ...(hopLimit !== undefined && { hopLimit }) });
  }

  /** Returns the role of this end in the sprayed stage; null: it does not help, or is not allowed. */
  #hardPart(now: number): HardPart | null {
    const nats = this.nats(now);
    if (nats === null || !this.#options.hardNat || this.#target() === null) return null;
    if (nats.local.mapping === 'random' && isIndependent(nats.remote)) return 'sockets';
    return nats.remote.mapping === 'random' && isIndependent(nats.local) ? 'spray' : null;
  }

  /**
   * Returns the address of the peer's NAT, from its list: the first reflexive IPv4 address that may be opened widely.
   */
  #target(): SocketAddress | null {
    const { budget } = this.#options;
    const isTarget = ({ type, address }: RendezvousState['candidates'][number]): boolean =>
      type !== 'host' && !address.includes(':') && budget.isFree(address);
    return this.round.lists.remote?.candidates.find(isTarget) ?? null;
  }
}

function isIndependent({ mapping }: NatReport): boolean {
  return mapping === 'independent' || mapping === 'none';
}
