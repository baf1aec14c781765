/**
 * The responder's side of the handshake from the Complete on.
 *
 *   Complete → decoded on a copy of the state → parameters and offer → connection in the core, Complete acknowledged
 *            → a slot for it (admission.ts): announced; none: closed with BUSY, unannounced
 *            → early Data delivered to it
 */
import { CloseCode, LocalError } from '../errors/index.ts';
import { equalBytes, fingerprint } from '../identity/index.ts';
import { packed } from '../packed-bytes.ts';
import type { Path } from '../path.ts';
import { hasSlot } from './admission.ts';
import type { BareRoutes } from './bare-routes.ts';
import { type Context, flowPartsOf, idleTimeoutOf, openCore, ownParameters } from './context.ts';
import type { HalfOpen, HalfOpenTable } from './half-open.ts';
import { isBest } from './negotiation.ts';
import { decodeInitiatorOffer, type InitiatorOffer } from './parameters.ts';
import { NetworkLimiter } from './rate.ts';
import { Slot } from './registry.ts';

/** Length of the tag of a Noise message. */
const TAG_LENGTH = 16;
/** Further Completes a second per address that are processed after an invalid one (docs/transport.md §1). */
export const FAILURE_RATE = 5;
const BUSY_REASON = 'no room for another connection';
const NOTHING = Object.freeze({});
const DOWNGRADE_REASON = 'a better version was on offer';

export class Completer {
  readonly #context: Context;
  readonly #halfOpen: HalfOpenTable;
  readonly #bareRoutes: BareRoutes;
  readonly #limiter = new NetworkLimiter(FAILURE_RATE);

  constructor(context: Context, halfOpen: HalfOpenTable, bareRoutes: BareRoutes) {
    this.#context = context;
    this.#halfOpen = halfOpen;
    this.#bareRoutes = bareRoutes;
  }

  /**
   * Handles the Complete `packet`, with its Noise `message`, for a half-open handshake. The connection has the path of
   * the handshake, or the bare route that is offered to it if the packet came there.
   */
  complete(entry: HalfOpen, packet: Uint8Array, message: Uint8Array, from: Path, now: number): void {
    const { handshake, remoteId } = entry.fields;
    const path = this.#bareRoutes.isOffered(from, entry) ? from : entry.fields.path;
    // Each costs Diffie-Hellman. The first of a handshake is always processed: the number of handshakes is limited
    // already.
    if (entry.failures > 0 && !this.#limiter.take(path.kind === 'route' ? path.key : path.address, now)) {
      this.#context.stats.limited++;
      return;
    }
    let read: InitiatorOffer | undefined;
    const payload = handshake.readMessage(message, (bytes) => {
      read = decodeInitiatorOffer(bytes);
      return equalBytes(read.id, remoteId);
    });
    const offer = read;
    if (payload === null || offer === undefined) {
      entry.failures++;
      this.#context.stats.badHandshake++;
      return;
    }
    try {
      const slot = this.#establish(entry, offer, packet, path, now);
      for (const data of entry.early) slot.connection.receive(data, 0, path, now);
    } catch (error) {
      if (!(error instanceof LocalError) || error.code !== 'OUT_OF_MEMORY') throw error;
      // The core is full. The peer's next Data packet will be answered with Reset.
      this.#context.stats.limited++;
      this.#halfOpen.remove(entry);
    }
  }

  #establish(entry: HalfOpen, offer: InitiatorOffer, packet: Uint8Array, path: Path, now: number): Slot {
    const { registry } = this.#context;
    const slot = this.#open(entry, offer, path, now);
    slot.complete = tagOf(packet);
    registry.add(slot);
    registry.remoteIds.add(slot, { id: entry.fields.remoteId, resetToken: offer.resetToken });
    slot.connection.completeReceived(now);
    this.#admit(slot, isBest(entry.fields.version, entry.fields.suite, offer), now);
    registry.ready(slot);
    registry.activate(slot);
    return slot;
  }

  #open(entry: HalfOpen, offer: InitiatorOffer, path: Path, now: number): Slot {
    const { config, registry, streams } = this.#context;
    const { handshake, remoteId } = entry.fields;
    const acceptStreams = config.acceptStreams === true;
    const local = ownParameters(config, acceptStreams);
    const keys = () => handshake.trafficKeys();
    const remote = offer.parameters;
    const rtt = entry.rtt(now);
    const core = openCore(this.#context, { initiator: false, keys, localId: entry.id, remoteId, local, remote, path, rtt }, now);
    const slot = new Slot(registry, entry.id, { initiator: false, path });
    slot.connection.established({
      core,
      path,
      fingerprint: fingerprint(handshake.remoteStatic!, config.crypto),
      verified: 'none',
      handshakeHash: handshake.hash,
      info: NOTHING,
      idleTimeout: idleTimeoutOf(local, remote),
      flowParts: Math.min(flowPartsOf(local), offer.flowParts),
      streams,
      acceptStreams,
    });
    this.#handOver(entry, slot, path);
    return slot;
  }

  /** Moves id, route and offered route from the half-open handshake to the connection. */
  #handOver(entry: HalfOpen, slot: Slot, path: Path): void {
    const { ids, routes } = this.#context;
    slot.route = path;
    routes.add(path);
    if (this.#bareRoutes.isOffered(path, entry)) this.#bareRoutes.drop(path);
    else this.#bareRoutes.handOver(entry, slot);
    entry.completed = true;
    this.#halfOpen.remove(entry);
    ids.replace(entry.id, slot);
  }

  /** Announces a new connection to the owner, or closes it. */
  #admit(slot: Slot, best: boolean, now: number): void {
    const { registry, stats } = this.#context;
    if (best && hasSlot(this.#context, slot, now)) {
      slot.accepted = true;
      registry.accepted++;
      registry.announce({ kind: 'connection', connection: slot.connection });
      return;
    }
    stats.refused++;
    slot.silent = true;
    if (best) slot.connection.close(CloseCode.BUSY, BUSY_REASON, now);
    else slot.connection.close(CloseCode.HANDSHAKE_REJECTED, DOWNGRADE_REASON, now);
  }
}

/** Identifies a Complete by the tag at its end. */
export function tagOf(complete: Uint8Array): string {
  return packed(complete.subarray(-TAG_LENGTH));
}
