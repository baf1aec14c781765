/**
 * Device → base station: `POST /device/attach` and `PUT /device/sct`; `outbound-api.ts` adds the calls to the outside.
 *
 * An accepted attach makes the session the device's channel: from then on only this router answers on it, and the
 * device is reachable. An earlier session of the same device is closed (REPLACED, the newest wins), and waiting clients
 * are served.
 */

import type { Environment } from '../../platform/environment.ts';
import { type CoapReply, type RoutedRequest, Router, Status, textReply } from '../../protocol/coap/index.ts';
import {
  CONTENT_FORMAT_CBOR,
  DevicePath,
  decodeAttachRequest,
  decodeTokens,
  digestOfTokenHashes,
  encodeAttachAnswer,
  encodeSeenAddress,
  type StunServer,
  stationReply,
} from '../../protocol/control/index.ts';
import { CloseCode, LocalError, StationCode, stationCodeMeaning } from '../../protocol/errors/index.ts';
import { placeOfPeer } from '../../protocol/path.ts';
import { Rates } from '../../protocol/rates.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import type { Session } from '../../runtime/session/index.ts';
import { hashSecret } from '../storage/secrets.ts';
import type { Store } from '../storage/store.ts';
import { checkAttach } from './checks.ts';
import type { DeviceIds } from './directory.ts';
import { type Attachment, deviceName, type Presence } from './presence.ts';
import { addressKey, BURST_SECONDS, tooMany } from './rates.ts';
import type { StationSettings } from './settings.ts';
import { STORAGE_FAILED, type StorageHealth } from './storage-health.ts';

export interface DeviceApiOptions {
  environment: Environment;
  store: Store;
  settings: StationSettings;
  presence: Presence;
  health: StorageHealth;
  tally: LogTally;
  /** The STUN ports. A device learns them when it attaches; the answer waits until they are known. */
  stun: { readonly servers: readonly StunServer[]; readonly opened: Promise<void> };
  /** Called when a device has attached; its answer has not left yet. */
  onAttached: (device: Attachment) => void;
}

/** Serves requests of devices. */
export class DeviceApi {
  readonly router: Router<Session>;
  readonly #options: DeviceApiOptions;
  readonly #attaches: Rates;
  readonly #uploads: Rates;

  constructor(options: DeviceApiOptions) {
    const { attachesPerAddress, uploadsPerDevice } = options.settings;
    this.#options = options;
    this.#attaches = new Rates(attachesPerAddress, BURST_SECONDS * attachesPerAddress);
    this.#uploads = new Rates(uploadsPerDevice, BURST_SECONDS * uploadsPerDevice);
    this.router = new Router<Session>({
      onError: (error) => options.tally.log.error('device request failed', { error: String(error) }),
    })
      .on('POST', DevicePath.ATTACH, (request) => this.attach(request))
      .on('PUT', DevicePath.SCT, (request) => this.#tokens(request));
  }

  /** Serves an attach, also on a neutral session. */
  async attach({ payload, context: session }: RoutedRequest<Session>): Promise<CoapReply> {
    const wait = this.#attaches.take(addressKey(session.paths.active), this.#options.environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const { productId, deviceId, tokens } = decodeAttachRequest(payload);
    const checked = await checkAttach(this.#options.store, productId, deviceId, session.peer.fingerprint);
    if ('refused' in checked) {
      const reason = stationCodeMeaning(checked.refused)?.message;
      this.#options.tally.count('attach refused', {
        device: deviceName({ productId, deviceId }),
        address: placeOfPeer(session.paths.active),
        reason,
      });
      return stationReply(checked.refused);
    }
    const tokensKnown = tokens !== null && hexOf(tokens) === (await this.#options.store.tokensDigest(productId, deviceId));
    await this.#options.stun.opened;
    if (session.isOpen) this.#attached({ productId, deviceId, session, since: this.#since(session, { productId, deviceId }) });
    return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload: this.#answer(session, tokensKnown) };
  }

  #attached(entry: Attachment): void {
    const { environment, presence, onAttached } = this.#options;
    // A device that attaches again on its own channel does not fill the log.
    const level = presence.ofSession(entry.session) === null ? 'info' : 'debug';
    const replaced = presence.add(entry);
    entry.session.router = this.router;
    environment.log[level](replaced ? 'device attached again' : 'device attached', {
      device: deviceName(entry),
      address: placeOfPeer(entry.session.paths.active),
    });
    onAttached(entry);
    if (replaced) void replaced.session.close(CloseCode.REPLACED, stationCodeMeaning(StationCode.REPLACED)!.message);
  }

  /** Returns the time of the attach: a device that attaches again on its own channel was attached all the time. */
  #since(session: Session, device: DeviceIds): number {
    const { environment, presence } = this.#options;
    const before = presence.ofSession(session);
    return before !== null && deviceName(before) === deviceName(device) ? before.since : Math.round(environment.clock.wallTime());
  }

  #answer(session: Session, tokensKnown: boolean): Uint8Array {
    const { environment, settings, stun } = this.#options;
    const { kind, address, port } = session.paths.active;
    return encodeAttachAnswer({
      kind: 'attached',
      keepAlive: settings.keepAlive,
      // The port of a WebSocket is no candidate for UDP.
      observedAddress: kind === 'udp' ? { address, port } : null,
      wallTime: Math.round(environment.clock.wallTime()),
      maxTokens: settings.tokensPerDevice,
      tokensKnown,
      stun: stun.servers,
    });
  }

  async #tokens({ payload, context: session }: RoutedRequest<Session>): Promise<CoapReply> {
    const { environment, health, presence, settings, store } = this.#options;
    const device = presence.ofSession(session);
    if (device === null) return stationReply(StationCode.REPLACED);
    const wait = this.#uploads.take(deviceName(device), environment.clock.now());
    if (wait > 0) return tooMany(wait);
    const tokens = decodeTokens(payload);
    if (tokens.length > settings.tokensPerDevice) {
      return textReply(Status.REQUEST_ENTITY_TOO_LARGE, `At most ${settings.tokensPerDevice} tokens`);
    }
    const hashes = tokens.map(hashSecret);
    const digest = hexOf(digestOfTokenHashes(hashes, environment.crypto));
    const { productId, deviceId } = device;
    // An unchanged list writes nothing: each write waits for the disk.
    if (digest === (await store.tokensDigest(productId, deviceId))) return { status: Status.CREATED };
    try {
      await store.replaceTokens(productId, deviceId, { hashes, digest });
    } catch (error) {
      if (error instanceof LocalError) throw error;
      health.writeFailed(error);
      return STORAGE_FAILED;
    }
    return { status: Status.CREATED };
  }
}

/**
 * Serves `GET /device/address` and `GET /client/address`: the address of the channel that was validated last. A NAT may
 * have given the channel another one since the end attached or connected.
 */
export function seenAddress({ context: { paths } }: RoutedRequest<Session>): CoapReply {
  const { kind, address, port } = paths.validated;
  // The TCP port of a WebSocket is not a port of the NAT's UDP mappings.
  if (kind !== 'udp') return textReply(Status.NOT_FOUND, 'No address');
  return { status: Status.CONTENT, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeSeenAddress({ address, port }) };
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
