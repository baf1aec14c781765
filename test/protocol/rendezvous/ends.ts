/**
 * One end of a rendezvous for the tests of round and agent: its inputs, its packets and events, and the packets of a
 * peer with its keys.
 */
import type { Candidate, CandidateType, NatReport, RendezvousState, SocketAddress } from '../../../protocol/control/index.ts';
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  clientLimits,
  HostBudget,
  type LocalView,
  MAIN_SOCKET,
  type RoundBudget,
  type RoundPacket,
} from '../../../protocol/rendezvous/index.ts';
import type { HostLimits } from '../../../protocol/rendezvous/send-budget.ts';
import { encodeCheck, encodeCheckAnswer } from '../../../protocol/stun/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import type { Part } from '../../support/verbs.ts';

export const OURS = '198.51.100.1';
export const PEER = '198.51.100.2';
/** Keys of the peer's checks and answers. */
export const peerKeys = { tag: new Uint8Array(8).fill(2), key: new Uint8Array(16).fill(2) };

export const at = (address: string, port: number): SocketAddress => ({ address, port });
export const candidate = (address: string, port: number, type: CandidateType = 'reflexive'): Candidate => ({ address, port, type });
export const complete = (candidates: readonly Candidate[] = [candidate(OURS, 1_000)], nat?: NatReport): LocalView => ({
  candidates,
  isComplete: true,
  ...(nat && { nat }),
});

/** Makes a list of the peer. */
export function peerList(candidates: readonly Candidate[], more: Partial<RendezvousState> = {}): RendezvousState {
  return { ...peerKeys, key: peerKeys.key.slice(), number: 1, candidates, opened: 1, ...more };
}

export interface EndOptions extends Partial<Omit<AgentOptions, 'budget' | 'crypto'>> {
  readonly limits?: HostLimits;
  /** Trusted addresses. Default: that of the peer. */
  readonly trusted?: readonly string[];
  readonly seed?: number;
}

/** An agent with its own budget. It has the four verbs, so a driver runs it. */
export class End implements Part<RoundPacket, AgentEvent> {
  readonly agent: Agent;
  readonly budget: RoundBudget;
  readonly events: AgentEvent[] = [];
  readonly keys = { tag: new Uint8Array(8).fill(1), key: new Uint8Array(16).fill(1) };
  readonly #crypto;

  constructor(options: EndOptions = {}, now = 0) {
    const { limits = clientLimits, trusted = [PEER], seed = 1, ...given } = options;
    this.#crypto = nativeHost(seed);
    this.budget = new HostBudget(limits).acquireRound('known', now)!;
    for (const address of trusted) this.budget.trust(address);
    const defaults = {
      role: 'client',
      rtt: 0,
      hardNat: true,
      sprayReason: 'test',
      isNear: () => false,
      isUsable: () => true,
      reach: (address: string) => address,
    } as const;
    this.agent = new Agent({ ...defaults, ...this.keys, crypto: this.#crypto, budget: this.budget, ...given }, now);
  }

  nextTimeout(): number {
    return this.agent.nextTimeout();
  }

  handleTimeout(now: number): void {
    this.agent.handleTimeout(now);
  }

  transmit(now: number): RoundPacket | null {
    return this.agent.transmit(now);
  }

  nextEvent(): AgentEvent | null {
    const event = this.agent.nextEvent();
    if (event !== null) this.events.push(event);
    return event;
  }

  /** Runs it alone from `from` to `until`. @returns the packets sent, with times */
  run(from: number, until: number): (RoundPacket & { readonly time: number })[] {
    const sent: (RoundPacket & { readonly time: number })[] = [];
    for (let now = from; now <= until; now = Math.max(this.nextTimeout(), now + 0.01)) {
      this.handleTimeout(now);
      for (let event = this.nextEvent(); event !== null; event = this.nextEvent());
      for (let packet = this.transmit(now); packet !== null; packet = this.transmit(now)) sent.push({ ...packet, time: now });
      for (let event = this.nextEvent(); event !== null; event = this.nextEvent());
    }
    return sent;
  }

  /** Delivers a check of the peer. @returns our answer */
  check(from: SocketAddress, now: number, { socket = MAIN_SOCKET, key = this.keys.key } = {}): Uint8Array | null {
    const check = encodeCheck(this.keys.tag, key, this.#crypto.randomBytes(12), this.#crypto);
    return this.agent.round.receiveCheck(check, from, socket, now);
  }

  /** Delivers the peer's answer to one of our packets. */
  answer(packet: RoundPacket, now: number, { from = packet.to, socket = packet.socket, key = peerKeys.key } = {}): boolean {
    return this.agent.receiveAnswer(encodeCheckAnswer(packet.datagram, at(OURS, 1_000), key, this.#crypto), from, socket, now);
  }

  /** Returns the kinds of its events so far. */
  get kinds(): readonly string[] {
    return this.events.map(({ kind }) => kind);
  }
}
