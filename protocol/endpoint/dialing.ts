/**
 * The initiator's side of the handshake.
 *
 * 1. connect: Initiate, repeated with doubling pauses until the deadline. prepare: the same packet for the base station
 *    to carry.
 * 2. Retry: once, the Initiate again with the token. Versions: fails if we support none of them.
 * 3. Respond: decoded on a copy of the state. Before anything of our own is sent, the key is checked against the pin,
 *    and `info` against `expect`.
 * 4. The Complete goes to the core as packet 0, which repeats it until it is acknowledged; the connection is open
 *    immediately. From a crowded peer it awaits the acknowledgement, until the deadline.
 */
import type { DataParameters } from '../../bindings/index.ts';
import type { Connection } from '../connection/index.ts';
import { isCoreFailure, LocalError, RemoteError, type SvcError } from '../errors/index.ts';
import { equalBytes, fingerprint, fingerprintsEqual } from '../identity/index.ts';
import type { HandshakeState } from '../noise/index.ts';
import { decodeRespond, decodeRetry, decodeVersions, encodeComplete } from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { ConnectOptions, PrepareOptions, RouteOptions } from './config.ts';
import { type Context, flowPartsOf, idleTimeoutOf, openCore, ownParameters } from './context.ts';
import { Dial, FIRST_TIMEOUT } from './dial.ts';
import { SUITES, supported, VERSIONS } from './negotiation.ts';
import { decodeResponderOffer, encodeInitiatorOffer, type ResponderOffer } from './parameters.ts';
import { Slot } from './registry.ts';

export class Dialer {
  readonly #context: Context;
  readonly #prepared = new WeakMap<Connection, Slot>();

  constructor(context: Context) {
    this.#context = context;
  }

  connect(options: ConnectOptions, now: number): Connection {
    const slot = this.#start(options, options.path, options.firstTimeout ?? FIRST_TIMEOUT, now);
    this.#takeRoute(slot, options.path, options);
    this.handleTimeout(slot, slot.dial!, now);
    return slot.connection;
  }

  prepare(options: PrepareOptions, now: number): Connection {
    const slot = this.#start(options, null, FIRST_TIMEOUT, now);
    slot.connection.initiate = slot.dial!.initiate;
    this.#prepared.set(slot.connection, slot);
    return slot.connection;
  }

  /**
   * Handles the Respond that the base station brought for a prepared connection. An invalid one ends the attempt, since
   * no other will come.
   */
  respond(connection: Connection, packet: Uint8Array, path: Path, now: number, options: RouteOptions): void {
    const slot = this.#prepared.get(connection);
    // The attempt has ended meanwhile.
    if (slot === undefined || slot.dial === null) return;
    this.#takeRoute(slot, path, options);
    const fields = decodeRespond(packet);
    if (fields !== null && equalBytes(fields.destination, slot.id) && this.#holds(slot, slot.dial, fields, path, now)) return;
    this.#fail(slot, new RemoteError('BAD_RESPONSE', 'the response to the handshake is not valid'));
  }

  /** Handles a Retry, Respond or Versions for an id that we are dialing with. False: dropped. */
  receive(slot: Slot, packet: Uint8Array, now: number): boolean {
    const dial = slot.dial!;
    // A prepared handshake has no path, so nothing for it can come from the network.
    if (dial.path === null) return false;
    const respond = decodeRespond(packet);
    if (respond !== null) return this.#holds(slot, dial, respond, dial.path, now);
    const retry = decodeRetry(packet);
    if (retry !== null) return this.#retry(slot, dial, retry.token, now);
    const versions = decodeVersions(packet);
    return versions !== null && this.#versions(slot, versions.versions, versions.suites);
  }

  /** Runs the timer of a dial: its Initiate goes to the outbox, its end to the connection. */
  handleTimeout(slot: Slot, dial: Dial, now: number): void {
    const { outbox, registry } = this.#context;
    dial.handleTimeout(now);
    for (let packet = dial.transmit(); packet !== null; packet = dial.transmit()) outbox.push(dial.path!, packet);
    if (dial.nextEvent() !== null) this.#fail(slot, new RemoteError('TIMEOUT', 'the peer does not answer'));
    else registry.timers.set(slot, dial.nextTimeout());
  }

  #start(options: PrepareOptions, path: Path | null, firstTimeout: number, now: number): Slot {
    const { config, ids, registry } = this.#context;
    const slot = this.#slot(path);
    try {
      slot.dial = new Dial({
        crypto: config.crypto,
        aead: config.core.aead,
        identity: options.identity ?? config.identity,
        id: slot.id,
        path,
        options,
        firstTimeout,
        now,
      });
    } catch (error) {
      ids.release(slot.id);
      throw error;
    }
    registry.add(slot);
    registry.timers.set(slot, slot.dial.nextTimeout());
    return slot;
  }

  #slot(path: Path | null): Slot {
    const { ids, registry } = this.#context;
    const slot = ids.allocate((id) => new Slot(registry, id, { initiator: true, path }));
    if (slot === null) throw new LocalError('OUT_OF_MEMORY', 'there is no room for another connection: close some first');
    return slot;
  }

  #takeRoute(slot: Slot, path: Path, options: RouteOptions): void {
    slot.route = path;
    this.#context.routes.add(path, options.routeResetToken);
  }

  #retry(slot: Slot, dial: Dial, token: Uint8Array, now: number): boolean {
    if (dial.retried) return false;
    dial.retry(token, now);
    this.handleTimeout(slot, dial, now);
    return true;
  }

  /** Versions is not authenticated, so it only counts when it leaves no choice. */
  #versions(slot: Slot, versions: Uint8Array, suites: Uint8Array): boolean {
    if (versions.some((version) => suites.some((suite) => supported(version, suite)))) return false;
    this.#fail(slot, new RemoteError('NOT_IMPLEMENTED', 'the peer supports no version of the protocol that we support'));
    return true;
  }

  /** As #respond, but returns false for a payload that cannot be decoded, too. */
  #holds(slot: Slot, dial: Dial, respond: { source: Uint8Array; message: Uint8Array }, path: Path, now: number): boolean {
    try {
      return this.#respond(slot, dial, respond, path, now);
    } catch (error) {
      if (error instanceof RemoteError) return false;
      throw error;
    }
  }

  /** Returns false, or throws RemoteError, when the message is not valid: then nothing has changed. */
  #respond(slot: Slot, dial: Dial, respond: { source: Uint8Array; message: Uint8Array }, path: Path, now: number): boolean {
    let read: ResponderOffer | undefined;
    const payload = dial.handshake.readMessage(respond.message, (bytes) => {
      read = decodeResponderOffer(bytes);
      return equalBytes(read.id, respond.source);
    });
    const offer = read;
    if (payload === null || offer === undefined) return false;
    try {
      const key = fingerprint(dial.handshake.remoteStatic!, this.#context.config.crypto);
      checkPin(dial.options.pin, key);
      checkExpected(dial.options.expect ?? {}, offer.info);
      this.#establish(slot, dial, { offer, remoteId: respond.source.slice(), path, fingerprint: key }, now);
    } catch (error) {
      if (!(error instanceof LocalError || error instanceof RemoteError) || isCoreFailure(error)) throw error;
      this.#fail(slot, error);
    }
    return true;
  }

  #establish(
    slot: Slot,
    dial: Dial,
    peer: { offer: ResponderOffer; remoteId: Uint8Array; path: Path; fingerprint: string },
    now: number,
  ): void {
    const { config, registry, streams } = this.#context;
    const { handshake } = dial;
    const { path, remoteId } = peer;
    const local = ownParameters(config, false);
    const complete = encodeComplete({ destination: remoteId, message: this.#writeThird(slot, handshake, local) });
    const keys = () => handshake.trafficKeys();
    const remote = peer.offer.parameters;
    const rtt = dial.rtt(now);
    const core = openCore(this.#context, { initiator: true, keys, localId: slot.id, remoteId, local, remote, path, complete, rtt }, now);
    slot.connection.established({
      core,
      path,
      fingerprint: peer.fingerprint,
      verified: dial.options.pin === undefined ? 'none' : 'pinned',
      handshakeHash: handshake.hash,
      info: peer.offer.info,
      idleTimeout: idleTimeoutOf(local, remote),
      flowParts: Math.min(flowPartsOf(local), peer.offer.flowParts),
      streams,
      acceptStreams: false,
      ...(peer.offer.crowded && { confirmBy: dial.options.deadline }),
    });
    dial.wipe();
    slot.dial = null;
    if (dial.options.migration === true) slot.connection.paths.supplyIds();
    registry.remoteIds.add(slot, { id: remoteId, resetToken: peer.offer.resetToken });
    registry.ready(slot);
    registry.activate(slot);
  }

  #writeThird(slot: Slot, handshake: HandshakeState, parameters: DataParameters): Uint8Array {
    const resetToken = this.#context.resets.token(slot.id);
    const offer = { parameters, flowParts: flowPartsOf(parameters), id: slot.id, resetToken, versions: VERSIONS, suites: SUITES };
    return handshake.writeMessage(encodeInitiatorOffer(offer));
  }

  #fail(slot: Slot, error: SvcError): void {
    this.#context.registry.lose(slot, error);
  }
}

function checkPin(pin: string | undefined, actual: string): void {
  if (pin === undefined || fingerprintsEqual(pin, actual)) return;
  throw new RemoteError('FINGERPRINT_MISMATCH', `the peer proved the key ${actual}, not the expected ${pin}`);
}

const MISMATCHES: Readonly<Record<string, string>> = { ProductId: 'WRONG_PRODUCT_ID', DeviceId: 'WRONG_DEVICE_ID' };

function checkExpected(expected: Readonly<Record<string, string>>, info: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(expected)) {
    if (Object.hasOwn(info, name) && info[name] === value) continue;
    throw new RemoteError(MISMATCHES[name] ?? 'BAD_RESPONSE', `the ${name} of the peer is not ${value}`);
  }
}
