/**
 * A device's CoAP endpoints on a UDP port, for any CoAP tool: a reverse proxy (RFC 7252 §5.7.3) for one device.
 *
 *   datagram ─▶ MessageLayer ─▶ critical options ─▶ BlockTransfers ─▶ request.ts ─▶ DeviceLink's connection ─▶ device
 *                                                                        └─ Observe ─▶ Observations
 *
 * A program that reaches the port acts with this client's rights at the device: by default the port listens on
 * loopback, and any process of the machine may use it. Without a connection, requests are answered 5.03 with the time
 * to wait; those under way when it is lost are answered 5.04. Bounded: requests under way, observations, bodies and the
 * memory of messages.
 */

import { anEnvironment, type BoundSocket, type Cancel, type Environment } from '../../platform/environment.ts';
import { callback, checkOptions, flag, type Kind, nonEmptyText, whole, withMethods } from '../../protocol/arguments.ts';
import type { CoapReply } from '../../protocol/coap/index.ts';
import { BlockTransfers, type DatagramRequest, MessageLayer } from '../../protocol/coap-udp/index.ts';
import { asSvcError, LocalError, type SvcError } from '../../protocol/errors/index.ts';
import { Alarm } from '../../runtime/alarm.ts';
import type { Connection } from '../connection.ts';
import { DeviceLink } from '../device-link.ts';
import { Observations, type Observer } from './observations.ts';
import { busyReply, errorReply, notConnectedReply, responseReply } from './replies.ts';
import { deviceRequest, unrecognizedOption } from './request.ts';

export interface GatewayOptions {
  /** The environment to run in; connections come from `connect`. */
  readonly environment: Environment;
  /** Opens a connection, always to the same device: called whenever there is none. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  /** An open connection to start with. The gateway closes it. */
  readonly connection?: Connection;
  /** Numeric address to listen on; default 127.0.0.1. */
  readonly host?: string;
  /** 0, the default: any free port. */
  readonly port?: number;
  /** Longest time for the device's answer, ms; default 60,000. */
  readonly requestTimeout?: number;
  /** The next connect may have another token, so that a rejected token does not end the gateway. Default false. */
  readonly renewsToken?: boolean;
  /**
   * Called when the connection to the device is open, is lost (it is opened again), or has ended permanently, see
   * `device-link.ts`.
   */
  readonly onState?: (state: GatewayState, error: SvcError | null) => void;
}

export type GatewayState = 'connected' | 'lost' | 'ended';

const KINDS: Record<keyof GatewayOptions, Kind> = {
  environment: anEnvironment,
  connect: callback,
  connection: withMethods('request', 'on'),
  host: nonEmptyText,
  port: whole(0, 0xffff),
  requestTimeout: whole(1),
  renewsToken: flag,
  onState: callback,
};

/** Requests under way at the device; it serves 64 of one connection, observations included. */
export const MAX_REQUESTS = 24;
export const REQUEST_TIMEOUT = 60_000;

/** A listening gateway. */
export class Gateway {
  readonly #options: GatewayOptions;
  readonly #layer: MessageLayer;
  readonly #transfers: BlockTransfers;
  readonly #observations: Observations;
  readonly #link: DeviceLink;
  /** Cancels the wait of each request under way. */
  readonly #waits = new Map<DatagramRequest, Cancel>();
  readonly #alarm: Alarm;
  #socket: BoundSocket | null = null;

  /** Listens. @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT */
  static async open(options: GatewayOptions): Promise<Gateway> {
    checkOptions('a gateway', options, KINDS, ['environment', 'connect']);
    const gateway = new Gateway(options);
    await gateway.#listen();
    return gateway;
  }

  private constructor(options: GatewayOptions) {
    const { clock, crypto } = options.environment;
    const random = (): number => new DataView(crypto.randomBytes(4).buffer).getUint32(0) / 2 ** 32;
    this.#options = options;
    this.#layer = new MessageLayer(random);
    this.#transfers = new BlockTransfers(random);
    this.#alarm = new Alarm(clock, () => {
      this.#layer.handleTimeout(clock.now());
      this.#transfers.handleTimeout(clock.now());
      this.#service();
    });
    this.#observations = new Observations({
      layer: this.#layer,
      transfers: this.#transfers,
      now: () => clock.now(),
      onSent: () => this.#service(),
      answer: (observer, reply, sequence) => this.#answer(observer, reply, sequence),
      drop: (observer) => void this.#settled(observer),
    });
    this.#link = new DeviceLink({
      environment: options.environment,
      connect: options.connect,
      renewsToken: options.renewsToken ?? false,
      events: {
        connected: (connection) => this.#connected(connection),
        lost: (error) => this.#report('lost', error),
        ended: (error) => this.#report('ended', error),
      },
    });
  }

  /** The port it listens on. */
  get port(): number {
    return this.#socket?.port ?? 0;
  }

  /** Requests under way at the device, and observations. */
  get stats(): { readonly requests: number; readonly observations: number } {
    return { requests: this.#waits.size, observations: this.#observations.size };
  }

  /** Stops listening and closes the connection to the device. Safe to call again. */
  async close(): Promise<void> {
    this.#socket?.close();
    this.#socket = null;
    this.#alarm.clear();
    this.#observations.close();
    for (const cancel of this.#waits.values()) cancel();
    this.#waits.clear();
    await this.#link.close();
  }

  async #listen(): Promise<void> {
    const { environment, host = '127.0.0.1', port = 0, connection = null } = this.#options;
    this.#socket = await environment.network.bind({
      host,
      port,
      receive: (datagram, peer) => {
        // Copied: the datagram is only lent, and an answer may need the message long after.
        this.#layer.receive(new Uint8Array(datagram), peer, environment.clock.now());
        this.#service();
      },
    });
    this.#link.start(connection);
  }

  /** Acts on the message layer's events, sends its datagrams, and schedules the next timeout. */
  #service(): void {
    const [layer, socket] = [this.#layer, this.#socket];
    for (let event = layer.nextEvent(); event !== null; event = layer.nextEvent()) {
      if (event.kind === 'request') this.#take(event.request);
      else this.#observations.delivered(event);
    }
    for (let out = layer.transmit(); out !== null; out = layer.transmit()) socket?.send(out.bytes, 0, out.bytes.length, out.peer, () => {});
    if (this.#socket !== null) this.#alarm.set(Math.min(this.#layer.nextTimeout(), this.#transfers.nextTimeout()));
  }

  #take(datagram: DatagramRequest): void {
    const unrecognized = unrecognizedOption(datagram.message);
    if (unrecognized !== undefined) {
      this.#refuse(datagram, unrecognized);
      return;
    }
    const now = this.#options.environment.clock.now();
    const taken = this.#transfers.take(datagram.peer.key, datagram.message, now);
    if ('answer' in taken) {
      this.#layer.respond(datagram, taken.answer, now);
      return;
    }
    const whole = taken.request;
    const request = deviceRequest(whole.message);
    if ('status' in request) this.#reply({ datagram, whole }, request);
    else this.#serve({ datagram, whole, request });
  }

  /** Refuses a request (RFC 7252 §5.4.1). Its block options are ignored: they may be the cause of the refusal. */
  #refuse(datagram: DatagramRequest, reply: CoapReply): void {
    const whole = { message: datagram.message, block1: undefined, block2: undefined, key: '' };
    if (datagram.confirmable) this.#reply({ datagram, whole }, reply);
    else this.#layer.reject(datagram);
  }

  #serve(observer: Observer): void {
    if (observer.request.observe === 1) this.#observations.cancel(observer);
    const { connection } = this.#link;
    if (connection === null) this.#reply(observer, notConnectedReply(this.#link.retryIn));
    else if (this.#waits.size >= MAX_REQUESTS) this.#reply(observer, busyReply());
    else if (observer.request.observe !== 0 || !this.#observe(observer, connection)) void this.#ask(observer, connection);
  }

  /** @returns false when it cannot be observed now: the request is then a plain GET */
  #observe(observer: Observer, connection: Connection): boolean {
    // The wait starts before anything can answer it.
    let giveUp: (() => void) | null = null;
    this.#await(observer, () => giveUp?.());
    giveUp = this.#observations.register(observer, connection);
    if (giveUp === null) this.#settled(observer);
    return giveUp !== null;
  }

  async #ask(observer: Observer, connection: Connection): Promise<void> {
    const { method, path, query, contentFormat, payload, accept } = observer.request;
    const stop = new AbortController();
    this.#await(observer, () => stop.abort());
    let reply: CoapReply;
    try {
      const content = payload.length > 0 || contentFormat !== null ? ({ body: payload, format: contentFormat ?? 'none' } as const) : {};
      reply = responseReply(await connection.request(method, path, { ...content, query, signal: stop.signal }), accept);
    } catch (error) {
      reply = errorReply(asSvcError(error));
    }
    this.#answer(observer, reply);
  }

  /**
   * Limits the time for the device's answer.
   * @param giveUp called when it is over; the request is then answered 5.04
   */
  #await(observer: Observer, giveUp: () => void): void {
    const { environment, requestTimeout = REQUEST_TIMEOUT } = this.#options;
    const cancel = environment.clock.schedule(requestTimeout, () => {
      this.#answer(observer, errorReply(new LocalError('TIMEOUT', 'the device did not answer in time')));
      giveUp();
    });
    this.#waits.set(observer.datagram, cancel);
  }

  #settled({ datagram }: Observer): boolean {
    this.#waits.get(datagram)?.();
    return this.#waits.delete(datagram);
  }

  /** Answers a request under way; does nothing when it has been answered, or everything is closed. */
  #answer(observer: Observer, reply: CoapReply, sequence?: number): void {
    if (this.#settled(observer)) this.#reply(observer, reply, sequence);
  }

  #reply({ datagram, whole }: Pick<Observer, 'datagram' | 'whole'>, reply: CoapReply, sequence?: number): void {
    const now = this.#options.environment.clock.now();
    this.#layer.respond(datagram, this.#transfers.reply(whole, reply, now, sequence), now);
    this.#service();
  }

  #connected(connection: Connection): void {
    this.#observations.resume(connection);
    this.#report('connected', null);
  }

  #report(state: GatewayState, error: SvcError | null): void {
    this.#options.onState?.(state, error);
  }
}
