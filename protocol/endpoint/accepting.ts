/**
 * The responder's side of the handshake, up to the Respond. completing.ts handles the Complete.
 *
 *   Initiate → under load: 20 a second per address, 10,000 in all and 5,000 beyond, or silence
 *            → 1,200 bytes in a bare datagram, any size over a WebSocket, and a valid mac1, or silence
 *            → version and suite, or Versions
 *            → a repeat: the same Respond again
 *            → under load: Retry until the address is validated (over a WebSocket it is), then 5 a second per address
 *            → room in the table of half-open handshakes → Respond
 *
 * Until the address is validated the anti-amplification limit applies (RFC 9000 §8.1). An Initiate that the base
 * station carries goes through the same steps, but its refusal is an error for the base station instead of a packet.
 */
import { type CborValue, encode } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';
import { equalBytes } from '../identity/index.ts';
import { HandshakeState, XX } from '../noise/index.ts';
import {
  decodeInitiate,
  encodeRespond,
  encodeRetry,
  encodeVersions,
  INITIATE_PADDED,
  type Initiate,
  mac1Holds,
  mac1Key,
} from '../packet/index.ts';
import type { Path } from '../path.ts';
import { isCrowded } from './admission.ts';
import type { RouteOptions } from './config.ts';
import { type Context, flowPartsOf, ownParameters } from './context.ts';
import { HalfOpen, HalfOpenTable, MAX_EARLY } from './half-open.ts';
import { prologue, SUITES, supported, VERSIONS } from './negotiation.ts';
import { encodeResponderOffer } from './parameters.ts';
import { InitiateRates, NetworkLimiter } from './rate.ts';
import { RetryTokens } from './retry.ts';

/** Handshakes a second per address under load (docs/transport.md §1). */
export const HANDSHAKE_RATE = 5;

export class Acceptor {
  readonly halfOpen: HalfOpenTable;
  readonly #context: Context;
  readonly #retry: RetryTokens;
  readonly #limiter = new NetworkLimiter(HANDSHAKE_RATE);
  readonly #rates = new InitiateRates();
  readonly #left: (entry: HalfOpen) => void;
  readonly #macKeys = new Map<string, Uint8Array>();
  /** Our own description in message 2, encoded. */
  readonly #info: Uint8Array;

  /** @param left called for each handshake that left the table, for whatever reason */
  constructor(context: Context, left: (entry: HalfOpen) => void) {
    this.#context = context;
    this.#left = left;
    this.#retry = new RetryTokens(context.config.crypto);
    this.#info = encode((context.config.info ?? {}) as Readonly<Record<string, CborValue>>);
    this.halfOpen = new HalfOpenTable((entry) => this.#forget(entry));
  }

  /**
   * Handles an Initiate from the network. Most of a flood gets a Retry or nothing, so `packet` is only borrowed: a
   * handshake that begins copies what it needs.
   * @param length of the datagram, padding included
   */
  initiate(packet: Uint8Array, length: number, path: Path, now: number): void {
    const { stats } = this.#context;
    if (path.kind !== 'route' && this.#underLoad() && !this.#rates.take(path.address, now)) {
      stats.limited++;
      return;
    }
    const initiate = decodeInitiate(packet);
    if (initiate === null || (path.kind === 'udp' && length < INITIATE_PADDED)) {
      stats.malformed++;
      return;
    }
    const name = this.#nameOf(packet, path);
    if (name === undefined) {
      stats.badMac++;
      return;
    }
    const known = this.halfOpen.find(path, initiate.source);
    if (!supported(initiate.version, initiate.suite)) this.#sendVersions(initiate, length, path);
    else if (known !== undefined) this.#repeat(known, initiate, length, now);
    else this.#first(initiate, { name, length, path, now });
  }

  /** Returns the Respond to an Initiate that the base station carried. @throws RemoteError when it is refused */
  accept(packet: Uint8Array, path: Path, now: number, options: RouteOptions): Uint8Array {
    const initiate = decodeInitiate(packet);
    if (initiate === null) throw new RemoteError('PARSE', 'the handshake packet is malformed');
    const name = this.#nameOf(packet, path);
    if (name === undefined) throw new RemoteError('NOT_FOUND', 'the handshake names another responder');
    if (!supported(initiate.version, initiate.suite)) throw new RemoteError('NOT_IMPLEMENTED', 'unknown version of the protocol');
    const known = this.halfOpen.find(path, initiate.source);
    if (known !== undefined && equalBytes(known.fields.message, initiate.message)) return responding(known, now);
    const { limits } = this.#context.config;
    // Strangers that connect directly, or hold handshakes open, must not keep out clients that come through the base
    // station.
    const busy = known === undefined && !this.halfOpen.hasCarriedRoom(limits.halfOpen, now);
    if (known !== undefined || busy) throw new RemoteError('TOO_MANY_REQUESTS', 'too many handshakes at once');
    const entry = this.#begin(initiate, { name, path, validated: true, length: packet.length, now }, options);
    if (entry === null) throw new RemoteError('BAD_REQUEST', 'the handshake message is not valid');
    return responding(entry, now);
  }

  /** Keeps a Data packet that overtook the Complete, unless there are too many handshakes or packets. */
  early(entry: HalfOpen, datagram: Uint8Array, start: number, now: number): void {
    this.halfOpen.touch(entry, now);
    const { parameters } = this.#context.config;
    const length = datagram.length - start;
    const keep = entry.early.length < MAX_EARLY && length <= parameters.maxUdpPayload && !this.#underLoad();
    if (keep) entry.early.push(new Uint8Array(datagram.subarray(start)));
    else this.#context.stats.limited++;
  }

  #underLoad(): boolean {
    return this.halfOpen.size >= this.#context.config.limits.retryAbove;
  }

  /** Returns our name under which mac1 is valid. */
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

  #first(initiate: Initiate, from: { name: string; length: number; path: Path; now: number }): void {
    const { path, length, now } = from;
    const validated = path.kind !== 'udp' || this.#retry.holds(initiate.token, path, initiate.source, now);
    if (this.#underLoad() && !validated) this.#sendRetry(initiate, length, path, now);
    else if (this.#underLoad() && path.kind !== 'route' && !this.#limiter.take(path.address, now)) this.#context.stats.limited++;
    else {
      const entry = this.#begin(initiate, { ...from, validated });
      if (entry !== null) this.#sendRespond(entry, now);
    }
  }

  #repeat(entry: HalfOpen, initiate: Initiate, length: number, now: number): void {
    if (!equalBytes(entry.fields.message, initiate.message)) {
      this.#context.stats.badHandshake++;
      return;
    }
    entry.received += length;
    this.halfOpen.touch(entry, now);
    this.#sendRespond(entry, now);
  }

  /** Returns a new half-open handshake with its Respond, or null when there is no room or the message is not valid. */
  #begin(
    initiate: Initiate,
    from: { name: string; path: Path; validated: boolean; length: number; now: number },
    options: RouteOptions = {},
  ): HalfOpen | null {
    const { config, ids, routes, stats } = this.#context;
    const { name, path, validated, length, now } = from;
    const remoteId = new Uint8Array(initiate.source);
    const message = new Uint8Array(initiate.message);
    const handshake = this.#readFirst({ ...initiate, message }, name);
    if (handshake === null) return this.#drop('badHandshake');
    if (!this.halfOpen.makeRoom(config.limits.halfOpen, { path, validated }, now)) return this.#drop('limited');
    const { version, suite } = initiate;
    const fields = { path, remoteId, message, version, suite, handshake, validated, createdAt: now };
    const entry = ids.allocate((id) => new HalfOpen(id, fields, length));
    if (entry === null) return this.#drop('limited');
    const second = this.#writeSecond(handshake, entry.id, path);
    if (second === null) {
      ids.release(entry.id);
      return this.#drop('badHandshake');
    }
    entry.respond = encodeRespond({ destination: remoteId, source: entry.id, message: second });
    routes.add(path, options.routeResetToken);
    this.halfOpen.add(entry);
    stats.halfOpen = this.halfOpen.size;
    return entry;
  }

  #drop(why: 'badHandshake' | 'limited'): null {
    this.#context.stats[why]++;
    return null;
  }

  /** Returns the handshake of message 1, or null when that is not valid. */
  #readFirst({ version, suite, message }: Initiate, name: string): HandshakeState | null {
    const { config } = this.#context;
    const handshake = new HandshakeState({
      pattern: XX,
      initiator: false,
      prologue: prologue(version, suite, name),
      crypto: config.crypto,
      aead: config.core.aead,
      staticKey: config.identity,
    });
    return handshake.readMessage(message)?.length === 0 ? handshake : null;
  }

  /** Returns message 2, or null when the initiator's ephemeral key yields no secret. */
  #writeSecond(handshake: HandshakeState, id: Uint8Array, path: Path): Uint8Array | null {
    const { config, resets } = this.#context;
    const parameters = ownParameters(config, config.acceptStreams === true);
    const crowded = isCrowded(this.#context, path, this.halfOpen.size);
    const offer = { parameters, flowParts: flowPartsOf(parameters), id, resetToken: resets.token(id), crowded };
    const payload = encodeResponderOffer(offer, this.#info);
    try {
      return handshake.writeMessage(payload);
    } catch (error) {
      if (error instanceof TypeError) return null;
      throw error;
    }
  }

  #sendRespond(entry: HalfOpen, now: number): void {
    const { outbox, stats } = this.#context;
    if (!entry.maySend(entry.respond.length)) {
      stats.limited++;
      return;
    }
    entry.sent += entry.respond.length;
    outbox.push(entry.fields.path, responding(entry, now));
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

  /** Cleans up after an entry that left the table; one that became a connection has passed its id on. */
  #forget(entry: HalfOpen): void {
    const { ids, registry, routes, stats } = this.#context;
    if (!entry.completed) {
      ids.release(entry.id);
      stats.halfOpenLost++;
    }
    entry.fields.handshake.wipe();
    if (routes.remove(entry.fields.path)) registry.announce({ kind: 'route-unused', path: entry.fields.path });
    stats.halfOpen = this.halfOpen.size;
    this.#left(entry);
  }
}

function responding(entry: HalfOpen, now: number): Uint8Array {
  entry.responding(now);
  return entry.respond;
}
