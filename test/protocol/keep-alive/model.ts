/** A minimal NAT and a station's STUN port in virtual time, and a driver for the learner behind them. */
import type { SocketAddress } from '../../../protocol/address.ts';
import { Learner } from '../../../protocol/keep-alive/index.ts';
import { answerPort, encodeBindingAnswer } from '../../../protocol/stun/index.ts';
import { Random } from '../../../testing/index.ts';
import { nativeHost } from '../../support/crypto.ts';

export const SERVER: SocketAddress = { address: '198.51.100.1', port: 4434 };

export interface ModelOptions {
  /** ms that a mapping lives after its last packet. */
  timeout: number;
  /** The same until packets have passed both ways for more than two seconds. Default: `timeout`. */
  shortTimeout?: number;
  /** Share of packets lost, each way. */
  loss?: number;
  /** External addresses, assigned in turn to new mappings. */
  addresses?: readonly string[];
  firstPort?: number;
  /** Round-trip time, ms. */
  rtt?: number;
  seed?: number;
  /** The station does not answer. */
  isSilent?: boolean;
}

interface Mapping {
  readonly socket: number;
  readonly outside: SocketAddress;
  readonly since: number;
  isAnswered: boolean;
  expires: number;
}

/** Everything that tests inspect. */
export class Model {
  readonly learner: Learner;
  now = 0;
  /** Requests that left the host. */
  sent = 0;
  /** Number of open sockets. */
  readonly open = new Map<number, number>();
  readonly options: ModelOptions;
  /** Addresses to which the station sent. */
  readonly targets = new Set<string>();
  readonly #random: Random;
  #mappings: Mapping[] = [];
  #made = 0;
  #opened = 0;
  #deliveries: { at: number; run: () => void }[] = [];

  constructor(options: ModelOptions) {
    this.options = options;
    this.learner = new Learner(nativeHost(options.seed ?? 1));
    this.#random = new Random(`model ${options.seed ?? 1}`);
  }

  /** Runs for `time` ms. */
  run(time: number): void {
    const end = this.now + time;
    this.#serve();
    for (;;) {
      const next = Math.min(this.learner.nextTimeout(), ...this.#deliveries.map(({ at }) => at));
      if (next > end) break;
      this.now = Math.max(this.now, next);
      const due = this.#deliveries.filter(({ at }) => at <= this.now);
      this.#deliveries = this.#deliveries.filter(({ at }) => at > this.now);
      for (const { run } of due) run();
      this.learner.handleTimeout(this.now);
      this.#serve();
    }
    this.now = end;
  }

  /** Runs until the learner has no timeout, or for `longest` ms. @returns ms */
  settle(longest = 3_600_000): number {
    const began = this.now;
    while (this.learner.report.state === 'learning' && this.now - began < longest) this.run(1_000);
    return this.now - began;
  }

  /** Lets the host sleep: its clock jumps, and timeouts are late. */
  jump(time: number): void {
    this.now += time;
  }

  #serve(): void {
    for (;;) {
      const event = this.learner.nextEvent();
      if (event === null) break;
      if (event.kind === 'close') this.open.clear();
      else if (event.kind === 'open') {
        this.open.set(event.socket, ++this.#opened);
        this.learner.opened(event.socket, this.now);
      }
    }
    for (let packet = this.learner.transmit(this.now); packet !== null; packet = this.learner.transmit(this.now)) {
      this.sent++;
      this.#out(this.open.get(packet.socket)!, packet.datagram);
    }
  }

  #out(socket: number, datagram: Uint8Array): void {
    const { rtt = 40, isSilent = false } = this.options;
    const mapping = this.#mappings.find((each) => each.socket === socket && each.expires > this.now) ?? this.#map(socket);
    this.#touch(mapping);
    const port = answerPort(datagram, mapping.outside.port);
    if (port === 0 || isSilent || this.#isLost() || this.#isLost()) return;
    const answer = encodeBindingAnswer(datagram, mapping.outside);
    const target = { address: mapping.outside.address, port };
    this.targets.add(target.address);
    this.#deliveries.push({ at: this.now + rtt, run: () => this.#in(answer, target) });
  }

  #in(answer: Uint8Array, { address, port }: SocketAddress): void {
    const mapping = this.#mappings.find(
      ({ outside, expires }) => outside.address === address && outside.port === port && expires > this.now,
    );
    if (mapping === undefined) return;
    mapping.isAnswered = true;
    this.#touch(mapping);
    for (const [number, socket] of this.open) if (socket === mapping.socket) this.learner.receive(answer.slice(), SERVER, number, this.now);
  }

  #map(socket: number): Mapping {
    const { addresses = ['203.0.113.7'], firstPort = 40_000 } = this.options;
    const outside = { address: addresses[this.#made % addresses.length]!, port: firstPort + this.#made++ };
    const mapping = { socket, outside, since: this.now, isAnswered: false, expires: 0 };
    this.#mappings = [...this.#mappings.filter(({ expires }) => expires > this.now), mapping];
    return mapping;
  }

  #touch(mapping: Mapping): void {
    const { timeout, shortTimeout = timeout } = this.options;
    const isStream = mapping.isAnswered && this.now - mapping.since > 2_000;
    mapping.expires = this.now + (isStream ? timeout : shortTimeout);
  }

  #isLost(): boolean {
    return this.#random.fraction() < (this.options.loss ?? 0);
  }
}
