// The responder's side of the handshake.
//
//   Initiate → mac1 under one of our names, or silence
//            → version and suite, or Versions
//            → a repeat: the same Respond again
//            → under load: Retry until the address is proven, then 5 handshakes a second per address
//            → room in the table of half-open handshakes → Respond
//   Complete → read on a copy of the state → parameters → connection, early Data fed to it; over the limit: closed with BUSY
//
// Until the address is proven no more than three times the bytes received are sent. An Initiate the base station carries takes the
// same way, but its refusal is an error for the base station instead of a packet.

import { CloseCode, LocalError, RemoteError } from '../errors/index.ts';
import { equalBytes, fingerprint } from '../identity/index.ts';
import { HandshakeState, XX } from '../noise/index.ts';
import { decodeInitiate, encodeRespond, encodeRetry, encodeVersions, type Initiate, mac1Holds, mac1Key } from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { RouteOptions } from './config.ts';
import { type Context, openCore, ownParameters } from './context.ts';
import { HalfOpen, HalfOpenTable, MAX_EARLY } from './half-open.ts';
import { isBest, prologue, SUITES, supported, VERSIONS } from './negotiation.ts';
import { decodeInitiatorOffer, encodeResponderOffer, type InitiatorOffer } from './parameters.ts';
import { PrefixLimiter } from './rate.ts';
import { Slot } from './registry.ts';
import { RetryTokens } from './retry.ts';

/** Handshakes a second per address under load (protocol.md §2). */
const HANDSHAKE_RATE = 5;
const BUSY_REASON = 'no room for another connection';

export class Acceptor {
  readonly halfOpen: HalfOpenTable;
  readonly #context: Context;
  readonly #retry: RetryTokens;
  readonly #limiter = new PrefixLimiter(HANDSHAKE_RATE);
  readonly #macKeys = new Map<string, Uint8Array>();

  constructor(context: Context) {
    this.#context = context;
    this.#retry = new RetryTokens(context.config.crypto);
    this.halfOpen = new HalfOpenTable((entry) => this.#forget(entry));
  }

  /** An Initiate from the network. `length` is that of the datagram, padding included. */
  initiate(packet: Uint8Array, length: number, path: Path, now: number): void {
    const { stats } = this.#context;
    const initiate = decodeInitiate(packet);
    if (initiate === null) {
      stats.malformed++;
      return;
    }
    const name = this.#nameOf(packet, path);
    if (name === undefined) {
      stats.badMac++;
      return;
    }
    if (!supported(initiate.version, initiate.suite)) return this.#sendVersions(initiate, length, path);
    const known = this.halfOpen.find(path, initiate.source);
    if (known !== undefined) return this.#repeat(known, initiate, length);
    const proven = path.kind !== 'udp' || this.#retry.holds(initiate.token, path, initiate.source, now);
    if (this.#underLoad()) {
      if (!proven) return this.#sendRetry(initiate, length, path, now);
      if (path.kind === 'udp' && !this.#limiter.take(path.address, now)) {
        stats.limited++;
        return;
      }
    }
    const entry = this.#begin(initiate, { name, path, proven, length, now });
    if (entry !== null) this.#sendRespond(entry);
  }

  /** An Initiate that the base station carried: the Respond. @throws RemoteError when it is refused */
  accept(packet: Uint8Array, path: Path, now: number, options: RouteOptions): Uint8Array {
    const initiate = decodeInitiate(packet);
    if (initiate === null) throw new RemoteError('PARSE', 'the handshake packet is malformed');
    const name = this.#nameOf(packet, path);
    if (name === undefined) throw new RemoteError('NOT_FOUND', 'the handshake is meant for somebody else');
    if (!supported(initiate.version, initiate.suite)) throw new RemoteError('NOT_IMPLEMENTED', 'unknown version of the protocol');
    const known = this.halfOpen.find(path, initiate.source);
    if (known !== undefined && equalBytes(known.fields.message, initiate.message)) return known.respond;
    const { limits } = this.#context.config;
    const busy = known === undefined && (this.#underLoad() || this.halfOpen.size >= limits.halfOpen);
    if (known !== undefined || busy) throw new RemoteError('TOO_MANY_REQUESTS', 'too many handshakes at once');
    const entry = this.#begin(initiate, { name, path, proven: true, length: packet.length, now }, options);
    if (entry === null) throw new RemoteError('BAD_REQUEST', 'the handshake message does not hold');
    return entry.respond;
  }

  /** A Complete for a half-open handshake. */
  complete(entry: HalfOpen, packet: Uint8Array, message: Uint8Array, now: number): void {
    const { stats, config } = this.#context;
    const { handshake } = entry.fields;
    const payload = handshake.readMessage(message);
    if (payload === null) {
      stats.badHandshake++;
      return;
    }
    try {
      const offer = decodeInitiatorOffer(payload);
      this.#open(entry, offer, fingerprint(handshake.remoteStatic!, config.crypto), packet, now);
    } catch (error) {
      if (!(error instanceof LocalError || error instanceof RemoteError) || error.code === 'CORE_FAILED') throw error;
      // Only whoever holds the keys of this handshake can get here: it is over.
      stats.badHandshake++;
      this.halfOpen.remove(entry);
    }
  }

  /** A Data packet that overtook the Complete: kept, unless there are too many handshakes or packets. */
  early(entry: HalfOpen, datagram: Uint8Array, start: number): void {
    const { parameters } = this.#context.config;
    const length = datagram.length - start;
    const keep = entry.early.length < MAX_EARLY && length <= parameters.maxUdpPayload && !this.#underLoad();
    if (keep) entry.early.push(datagram.slice(start));
    else this.#context.stats.limited++;
  }

  #underLoad(): boolean {
    return this.halfOpen.size >= this.#context.config.limits.retryAbove;
  }

  /** The name of ours under which mac1 holds. */
  #nameOf(packet: Uint8Array, path: Path): string | undefined {
    const { config } = this.#context;
    return config.responder?.(path).find((name) => mac1Holds(config.crypto, this.#macKey(name), packet));
  }

  #macKey(name: string): Uint8Array {
    let key = this.#macKeys.get(name);
    if (key === undefined) {
      key = mac1Key(this.#context.config.crypto, name);
      this.#macKeys.set(name, key);
    }
    return key;
  }

  #repeat(entry: HalfOpen, initiate: Initiate, length: number): void {
    if (!equalBytes(entry.fields.message, initiate.message)) {
      this.#context.stats.badHandshake++;
      return;
    }
    entry.received += length;
    this.#sendRespond(entry);
  }

  /** A new half-open handshake with its Respond, or null when there is no room or the message does not hold. */
  #begin(
    initiate: Initiate,
    from: { name: string; path: Path; proven: boolean; length: number; now: number },
    options: RouteOptions = {},
  ): HalfOpen | null {
    const { config, ids, routes, stats } = this.#context;
    const { name, path, proven, length, now } = from;
    const { version, suite } = initiate;
    const { crypto } = config;
    const handshake = new HandshakeState({
      pattern: XX,
      initiator: false,
      prologue: prologue(version, suite, name),
      crypto,
      aead: config.core.aead,
      staticKey: config.identity,
    });
    const payload = handshake.readMessage(initiate.message);
    if (payload === null || payload.length > 0) {
      stats.badHandshake++;
      return null;
    }
    if (!this.halfOpen.makeRoom(config.limits.halfOpen, proven)) {
      stats.limited++;
      return null;
    }
    const remoteId = initiate.source.slice();
    const message = initiate.message.slice();
    const fields = { path, remoteId, message, version, suite, handshake, validated: proven, createdAt: now };
    const entry = ids.allocate((id) => new HalfOpen(id, fields, length));
    if (entry === null) {
      stats.limited++;
      return null;
    }
    const second = this.#writeSecond(handshake, entry.id);
    if (second === null) {
      ids.release(entry.id);
      stats.badHandshake++;
      return null;
    }
    entry.respond = encodeRespond({ destination: remoteId, source: entry.id, message: second });
    routes.add(path, options.routeResetToken);
    this.halfOpen.add(entry);
    stats.halfOpen = this.halfOpen.size;
    return entry;
  }

  /** Message 2, or null when the initiator's ephemeral key gives no secret. */
  #writeSecond(handshake: HandshakeState, id: Uint8Array): Uint8Array | null {
    const { config, resets } = this.#context;
    const parameters = ownParameters(config, config.acceptStreams === true);
    const payload = encodeResponderOffer({ parameters, resetToken: resets.token(id), info: config.info ?? {} });
    try {
      return handshake.writeMessage(payload);
    } catch (error) {
      if (error instanceof TypeError) return null;
      throw error;
    }
  }

  #open(entry: HalfOpen, offer: InitiatorOffer, remoteFingerprint: string, packet: Uint8Array, now: number): void {
    const { config, ids, registry, routes, streams } = this.#context;
    const { path, handshake, remoteId, version, suite } = entry.fields;
    const acceptStreams = config.acceptStreams === true;
    const local = ownParameters(config, acceptStreams);
    const keys = handshake.trafficKeys();
    const remote = offer.parameters;
    const core = openCore(this.#context, { initiator: false, keys, localId: entry.id, remoteId, local, remote, path }, now);
    const slot = new Slot(registry, entry.id, { initiator: false, path });
    slot.complete = packet.slice();
    slot.connection.established({
      core,
      path,
      remoteKey: handshake.remoteStatic!,
      remoteFingerprint,
      verified: 'none',
      handshakeHash: handshake.hash,
      info: {},
      streams,
      acceptStreams,
    });
    // The id and the route go over from the half-open handshake to the connection.
    slot.route = path;
    routes.add(path);
    entry.completed = true;
    this.halfOpen.remove(entry);
    ids.replace(entry.id, slot);
    registry.add(slot);
    registry.knowRemote(slot, remoteId, offer.resetToken);
    slot.connection.completeReceived(now);
    this.#admit(slot, isBest(version, suite, offer), now);
    for (const data of entry.early) slot.connection.receive(data, 0, now);
    registry.ready(slot);
    registry.activate(slot);
  }

  /** Tells the owner of a new connection, or closes it at once. */
  #admit(slot: Slot, best: boolean, now: number): void {
    const { config, registry, stats } = this.#context;
    if (best && registry.accepted < config.limits.connections) {
      slot.accepted = true;
      registry.accepted++;
      registry.announce({ kind: 'connection', connection: slot.connection });
      return;
    }
    stats.refused++;
    slot.silent = true;
    if (best) slot.connection.close(CloseCode.BUSY, BUSY_REASON, now);
    else slot.connection.close(CloseCode.HANDSHAKE_REJECTED, 'a better version was on offer', now);
  }

  #sendRespond(entry: HalfOpen): void {
    const { outbox, stats } = this.#context;
    if (!entry.maySend(entry.respond.length)) {
      stats.limited++;
      return;
    }
    entry.sent += entry.respond.length;
    outbox.push(entry.fields.path, entry.respond);
  }

  #sendRetry(initiate: Initiate, length: number, path: Path, now: number): void {
    const { outbox, stats } = this.#context;
    const token = this.#retry.issue(path, initiate.source, now);
    const packet = encodeRetry({ destination: initiate.source, token });
    if (packet.length > 3 * length || !outbox.push(path, packet)) stats.limited++;
    else stats.retriesSent++;
  }

  #sendVersions(initiate: Initiate, length: number, path: Path): void {
    const { outbox, stats } = this.#context;
    const packet = encodeVersions({ destination: initiate.source, versions: VERSIONS, suites: SUITES });
    if (packet.length > 3 * length || !outbox.push(path, packet)) stats.limited++;
    else stats.versionsSent++;
  }

  /** An entry has left the table; one that became a connection has handed its id over. */
  #forget(entry: HalfOpen): void {
    const { ids, routes, stats } = this.#context;
    if (!entry.completed) {
      ids.release(entry.id);
      stats.halfOpenLost++;
    }
    entry.fields.handshake.wipe();
    routes.remove(entry.fields.path);
    stats.halfOpen = this.halfOpen.size;
  }
}
