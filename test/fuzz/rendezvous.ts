/**
 * An agent of the rendezvous with a peer that has the keys and follows no rule, and attackers beside it: nothing is
 * thrown, packets to an unvalidated address stay within their budget, and memory is bounded.
 */
import { decodeRendezvousState, encodeRendezvousState, type NatReport, type SocketAddress } from '../../protocol/control/index.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import { deviceLimits, type RoundPacket } from '../../protocol/rendezvous/index.ts';
import { encodeCheck, encodeCheckAnswer } from '../../protocol/stun/index.ts';
import type { Random } from '../../testing/random.ts';
import { at, candidate, complete, End, OURS, PEER, peerKeys, peerList } from '../protocol/rendezvous/ends.ts';
import { nativeHost } from '../support/crypto.ts';
import { below, chance, hostile, pick } from './mutate.ts';
import type { Target } from './target.ts';

const STEPS = 60;
const MAX_PAIRS = 64;
/** Of a round to an unvalidated address, with two more for checks that came from there. */
const MAX_UNVALIDATED = 4 + 2;
/** A timer that is due this often at one time spins. */
const ENDLESS = 5_000;

const crypto = nativeHost(1);
const ADDRESSES = [PEER, '203.0.113.66', '203.0.113.67', '2001:db8::66', '127.0.0.1', '0.0.0.0'];
const TYPES = ['host', 'reflexive', 'mapped'] as const;
const MAPPINGS = ['unknown', 'none', 'independent', 'sequential', 'random'] as const;

export const agentTarget: Target = {
  name: 'rendezvous-agent',
  weight: 2,
  iterate(random) {
    const subject = new Subject(random);
    for (let step = 0; step < STEPS; step++) subject.step();
  },
};

class Subject {
  readonly #random: Random;
  readonly #end: End;
  readonly #sent: RoundPacket[] = [];
  readonly #unvalidated = new Map<string, number>();
  #now = 0;

  constructor(random: Random) {
    this.#random = random;
    const role = pick(random, ['client', 'device'] as const);
    const trusted = chance(random, 0.5) ? [PEER] : [];
    this.#end = new End({ role, trusted, limits: deviceLimits, seed: random.u32(), isNear: (address) => address === ADDRESSES[3] });
  }

  step(): void {
    const { agent } = this.#end;
    const acts: (() => unknown)[] = [
      () => agent.setLocal({ ...complete(undefined, this.#nat()), isComplete: chance(this.#random, 0.7) }, this.#now),
      () => this.#list(),
      () => this.#check(),
      () => this.#answer(),
      () => agent.spray(this.#now),
      () => agent.sprayGranted(chance(this.#random, 0.5), this.#now),
      () => agent.socketsOpened(below(this.#random, 300), this.#now),
    ];
    pick(this.#random, acts)();
    this.#drain();
    this.#now += pick(this.#random, [0, 1, 10, 100, 1_000, 10_000]) * this.#random.fraction();
    agent.handleTimeout(this.#now);
    this.#drain();
    if (agent.round.checklist.pairs.length > MAX_PAIRS) throw new Error(`${agent.round.checklist.pairs.length} pairs`);
  }

  /** The packets that it wants to send now. */
  #drain(): void {
    const { agent } = this.#end;
    for (let count = 0; ; count++) {
      if (count > ENDLESS) throw new Error('transmit and nextEvent never end');
      const packet = agent.transmit(this.#now);
      const event = packet === null ? agent.nextEvent() : null;
      if (packet !== null) this.#note(packet);
      else if (event === null) break;
    }
    const next = agent.nextTimeout();
    if (Number.isNaN(next)) throw new Error('nextTimeout is not a number');
  }

  #note(packet: RoundPacket): void {
    const { address } = packet.to;
    this.#sent.push(packet);
    if (this.#end.budget.isFree(address)) return;
    const count = (this.#unvalidated.get(address) ?? 0) + 1;
    this.#unvalidated.set(address, count);
    if (count > MAX_UNVALIDATED) throw new Error(`${count} packets to ${address}, which is not validated`);
  }

  /** A list as it comes from the wire, mostly damaged. */
  #list(): void {
    const random = this.#random;
    const candidates = Array.from({ length: below(random, 9) }, () =>
      candidate(pick(random, ADDRESSES), this.#port(), pick(random, TYPES)),
    );
    const nat = this.#nat();
    const whole = encodeRendezvousState(peerList(candidates, { number: below(random, 5), opened: below(random, 5), ...(nat && { nat }) }));
    const payload = chance(random, 0.3) ? hostile(random, [whole]) : whole;
    try {
      this.#end.agent.setRemote(decodeRendezvousState(payload), this.#now);
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
    }
  }

  #check(): void {
    const random = this.#random;
    const { tag, key } = this.#end.keys;
    for (let count = pick(random, [1, 1, 1, 40]); count > 0; count--) {
      const whole = encodeCheck(tag, key, crypto.randomBytes(12), crypto);
      const check = chance(random, 0.3) ? hostile(random, [whole]) : whole;
      const answer = this.#end.agent.round.receiveCheck(check, this.#source(), below(random, 3), this.#now);
      if (answer !== null && answer.length !== whole.length) throw new Error('an answer has another size than its check');
    }
  }

  #answer(): void {
    const random = this.#random;
    if (this.#sent.length === 0) return;
    const packet = pick(random, this.#sent);
    const key = chance(random, 0.7) ? peerKeys.key : this.#end.keys.key;
    const whole = encodeCheckAnswer(packet.datagram, at(OURS, 1_000), key, crypto);
    const isRight = chance(random, 0.3);
    const datagram = isRight || chance(random, 0.5) ? whole : hostile(random, [whole]);
    // Answers are free: only the peer answers, and it cannot be where it does not receive.
    this.#end.agent.receiveAnswer(datagram, isRight ? packet.to : this.#source(), packet.socket, this.#now);
  }

  #source(): SocketAddress {
    return at(pick(this.#random, ADDRESSES), this.#port());
  }

  #port(): number {
    return 1 + below(this.#random, pick(this.#random, [4, 65_535]));
  }

  #nat(): NatReport | undefined {
    const random = this.#random;
    if (chance(random, 0.2)) return undefined;
    const mapping = pick(random, MAPPINGS);
    return mapping === 'sequential' && chance(random, 0.8)
      ? { mapping, last: this.#port(), stride: 1 + below(random, 65_535), age: below(random, 100_000) }
      : { mapping };
  }
}
