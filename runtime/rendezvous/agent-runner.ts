/**
 * Runs an agent of `protocol/rendezvous/` over the socket of a host and its further sockets: sends its packets, passes
 * on what arrives, serves its timer. The same at both ends.
 */
import { hex } from '@scure/base';
import type { BoundSocket, Cancel } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { type Agent, type AgentEvent, MAIN_SOCKET, type RoundPacket, SPRAY_LIFETIME } from '../../protocol/rendezvous/index.ts';
import { isStun, tagOfCheck } from '../../protocol/stun/index.ts';
import { FurtherSockets } from './further-sockets.ts';
import type { RendezvousHost } from './rendezvous-host.ts';
import type { StunDispatcher } from './stun-dispatcher.ts';

export interface AgentRunnerOptions {
  readonly host: RendezvousHost;
  readonly dispatcher: StunDispatcher;
  readonly agent: Agent;
  /** Tag of this end. */
  readonly tag: Uint8Array;
  /** Receives all events but `sockets`, which is handled here. Called from within a service: it may call `with`. */
  readonly onEvent: (event: Exclude<AgentEvent, { kind: 'sockets' }>) => void;
  /**
   * Device: the client uses a pair on a further socket, which the host has adopted. The owner releases the socket when
   * it carries no path. Absent at a client, which sends first: there only `pathOf` has sockets adopted.
   */
  readonly onAdopted?: (socket: BoundSocket) => void;
}

/** Sockets that a client may make a device adopt in a round: as many as a connection has paths. */
export const MAX_ADOPTED = 4;

export class AgentRunner {
  readonly #options: AgentRunnerOptions;
  readonly #further: FurtherSockets;
  readonly #ends: (() => void)[];
  /** Sources of valid checks, by socket: other datagrams from there, if not STUN, are for the connection. */
  readonly #speakers = new Map<number, Path>();
  #adopted = 0;
  #cancel: Cancel = () => {};
  #cancelSockets: Cancel = () => {};
  #serving = false;
  #stopped = false;

  constructor(options: AgentRunnerOptions) {
    const { host, dispatcher, tag } = options;
    this.#options = options;
    this.#further = new FurtherSockets(host, (datagram, path, number) => this.#receiveFurther(datagram, path, number));
    this.#ends = [
      dispatcher.addRound(hex.encode(tag), (check, path) => this.#check(check, path, MAIN_SOCKET)),
      dispatcher.addWaiting((answer, path) => this.#answer(answer, path, MAIN_SOCKET)),
    ];
  }

  get agent(): Agent {
    return this.#options.agent;
  }

  /** Runs `act` on the agent, then serves it. */
  with(act: (agent: Agent, now: number) => void): void {
    if (this.#stopped) return;
    act(this.agent, this.#now);
    this.#serve();
  }

  /**
   * Returns the path of a pair, and the socket behind it where the host had to adopt one; undefined when its socket is
   * gone.
   */
  pathOf({
    remote,
    socket,
  }: {
    readonly remote: SocketAddress;
    readonly socket: number;
  }): { path: Path; adopted: BoundSocket | null } | undefined {
    const { host } = this.#options;
    if (socket === MAIN_SOCKET) return { path: host.socket.path(remote.address, remote.port), adopted: null };
    const adopted = this.#further.adopt(socket);
    const path = this.#further.path(socket, remote);
    return adopted === undefined || path === undefined ? undefined : { path, adopted };
  }

  /** Ends the round at this end. Sockets that the host has adopted stay open. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#cancel();
    this.#cancelSockets();
    for (const end of this.#ends) end();
    this.agent.end();
    this.#further.close();
  }

  get #now(): number {
    return this.#options.host.environment.clock.now();
  }

  #check(datagram: Uint8Array, path: Path, socket: number): Uint8Array | null {
    const answer = this.agent.round.receiveCheck(datagram, path, socket, this.#now);
    if (answer !== null) {
      this.#speakers.set(socket, path);
      this.#serveSoon();
    }
    return answer;
  }

  #answer(datagram: Uint8Array, path: Path, socket: number): boolean {
    const isOurs = this.agent.receiveAnswer(datagram, path, socket, this.#now);
    // Any sender can forge a datagram that looks like an answer.
    if (isOurs) this.#serveSoon();
    return isOurs;
  }

  #receiveFurther(datagram: Uint8Array, path: Path, number: number): void {
    if (this.#stopped) return;
    if (!isStun(datagram)) {
      // The client already uses the pair: the socket is the connection's.
      if (this.#speakers.get(number) === path) this.#deliver(datagram, path, number);
      return;
    }
    if (tagOfCheck(datagram) === hex.encode(this.#options.tag)) {
      const answer = this.#check(datagram, path, number);
      if (answer !== null) this.#further.send(number, answer, path);
    } else this.#answer(datagram, path, number);
  }

  #deliver(datagram: Uint8Array, path: Path, number: number): void {
    const { onAdopted } = this.#options;
    if (onAdopted === undefined || this.#adopted === MAX_ADOPTED) return;
    const socket = this.#further.adopt(number);
    if (socket === undefined) return;
    this.#adopted++;
    onAdopted(socket);
    this.#further.deliver(number, datagram, path);
  }

  /** Serves later, so that the answer leaves first. */
  #serveSoon(): void {
    this.#options.host.environment.clock.soon(() => this.#serve());
  }

  #serve(): void {
    if (this.#stopped || this.#serving) return;
    this.#serving = true;
    try {
      const { agent } = this;
      agent.handleTimeout(this.#now);
      for (let event = agent.nextEvent(); event !== null && !this.#stopped; event = agent.nextEvent()) this.#handle(event);
      for (let packet = agent.transmit(this.#now); packet !== null && !this.#stopped; packet = agent.transmit(this.#now))
        this.#send(packet);
      for (let event = agent.nextEvent(); event !== null && !this.#stopped; event = agent.nextEvent()) this.#handle(event);
    } finally {
      this.#serving = false;
    }
    this.#arm();
  }

  #handle(event: AgentEvent): void {
    if (event.kind === 'sockets') void this.#openSockets(event.count);
    else this.#options.onEvent(event);
  }

  async #openSockets(count: number): Promise<void> {
    const ports = await this.#further.open(count);
    if (this.#stopped) return;
    // One spray at a time: its sockets are closed before the next may open as many.
    this.#cancelSockets = this.#options.host.environment.clock.schedule(SPRAY_LIFETIME, () => this.#further.close());
    this.with((agent, now) => agent.socketsOpened(ports.length, now));
  }

  #send({ socket, to, datagram, hopLimit }: RoundPacket): void {
    if (socket !== MAIN_SOCKET) {
      this.#further.send(socket, datagram, to, hopLimit);
      return;
    }
    const { host } = this.#options;
    host.send(datagram, host.socket.path(to.address, to.port), hopLimit);
  }

  #arm(): void {
    this.#cancel();
    if (this.#stopped) return;
    const at = this.agent.nextTimeout();
    this.#cancel = this.#options.host.environment.clock.schedule(Math.max(0, at - this.#now), () => this.#serve());
  }
}
