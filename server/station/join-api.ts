/**
 * Device → base station: `POST /device/join`, from a device that is not registered yet. It shows the token of an
 * invitation; the key that its handshake proved becomes the device's.
 *
 * 1. An address with too many requests must wait.
 * 2. The token's hash is looked up. The answer does not reveal whether it is unknown, expired, revoked or used with
 *    another key; each costs one read.
 * 3. The same key may repeat the request until the invitation expires: its first answer may be lost.
 * 4. Only then does the device learn what does not match: product, device id, an id that is taken.
 * 5. One transaction uses the invitation and adds the device.
 * 6. An address with more than ten refusals a minute gets no reason and must wait.
 *
 * The session stays without a credential: an attach follows, on it or on another.
 */

import type { Environment } from '../../platform/environment.ts';
import { type CoapReply, type RoutedRequest, Status } from '../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, decodeJoinRequest, encodeJoinAnswer, type JoinRequest, stationReply } from '../../protocol/control/index.ts';
import { StationCode } from '../../protocol/errors/index.ts';
import { fingerprintsEqual } from '../../protocol/identity/index.ts';
import { placeOfPeer } from '../../protocol/path.ts';
import { Rates } from '../../protocol/rates.ts';
import { areIds } from '../../protocol/records/ids.ts';
import type { LogTally } from '../../runtime/log-tally.ts';
import type { Session } from '../../runtime/session/index.ts';
import { type Invitation, InvitationLifetime } from '../storage/invitation-store.ts';
import { hashToken, newId } from '../storage/secrets.ts';
import type { Store } from '../storage/store.ts';
import type { ClockSteps } from './clock-steps.ts';
import { deviceName } from './presence.ts';
import { addressKey, tooMany } from './rates.ts';
import { STORAGE_FAILED, type StorageHealth } from './storage-health.ts';

export interface JoinApiOptions {
  environment: Environment;
  store: Pick<Store, 'device' | 'invitations'>;
  health: Pick<StorageHealth, 'writeFailed'>;
  steps: Pick<ClockSteps, 'look'>;
  tally: LogTally;
}

/** Failed joins a minute from one address (IPv4) or /64 (IPv6). */
export const FAILURES = 10;
const MINUTE = 60;

/** Joins a second from one address, and burst: a successful one may be repeated, and each reads the storage twice. */
export const JOINS = 5;
export const JOINS_AT_ONCE = 50;

/** The text of every refusal of a token, whatever the reason. */
const REJECTED = 'the invitation is not valid: it is unknown, expired, revoked, or another key has used it';

type Success = { readonly deviceId: string };
type Refusal = { readonly refused: StationCode; readonly message: string; readonly reason: string };

/** Serves joins. */
export class JoinApi {
  readonly #options: JoinApiOptions;
  readonly #joins = new Rates(JOINS, JOINS_AT_ONCE);
  readonly #failures = new Rates(FAILURES / MINUTE, FAILURES);

  constructor(options: JoinApiOptions) {
    this.#options = options;
  }

  /** Serves a join on a neutral session. */
  async join({ payload, context: session }: RoutedRequest<Session>): Promise<CoapReply> {
    const { environment, health, steps, tally } = this.#options;
    const address = addressKey(session.paths.active);
    const now = environment.clock.now();
    const wait = this.#joins.take(address, now);
    if (wait > 0) return tooMany(wait);
    const request = decodeJoinRequest(payload);
    try {
      await steps.look();
      const result = await this.#joined(request, session);
      if ('refused' in result) {
        tally.count('join refused', { address, reason: result.reason });
        // Only failures count: a device with a valid token joins regardless of its neighbours behind the same NAT.
        const pause = this.#failures.take(address, now);
        return pause > 0 ? tooMany(pause) : stationReply(result.refused, result.message);
      }
      return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeJoinAnswer(result.deviceId) };
    } catch (error) {
      health.writeFailed(error);
      return STORAGE_FAILED;
    }
  }

  async #joined(request: JoinRequest, session: Session): Promise<Success | Refusal> {
    const { store } = this.#options;
    const tokenHash = hashToken(request.token);
    const first = await this.#attempt(await store.invitations.find(tokenHash), request, session);
    // Another request was faster, perhaps one of the same device.
    return first ?? (await this.#attempt(await store.invitations.find(tokenHash), request, session)) ?? rejected('used');
  }

  /** Returns null when the invitation was used or revoked in between. */
  async #attempt(invitation: Invitation | null, request: JoinRequest, session: Session): Promise<Success | Refusal | null> {
    const { clock } = this.#options.environment;
    if (invitation === null) return rejected('unknown');
    const { expires, revoked, use } = invitation;
    const left = Date.parse(expires) - clock.wallTime();
    // A longer lifetime means that it was created under a wrong clock.
    if (!(left > 0 && left <= InvitationLifetime.MAX)) return rejected('expired');
    if (revoked) return rejected('revoked');
    if (use !== null && !fingerprintsEqual(use.fingerprint, session.peer.fingerprint)) return rejected('used');
    const { productId, deviceId } = invitation;
    if (request.productId !== productId)
      return refused(StationCode.WRONG_PRODUCT_ID, 'the invitation is for another product: check the product id');
    const named = use?.deviceId ?? deviceId;
    if (request.deviceId !== null && named !== null && request.deviceId !== named)
      return refused(StationCode.WRONG_DEVICE_ID, `the invitation is for the device id ${named}: leave yours out, or give that one`);
    return use === null ? this.#redeem(invitation, request, session) : this.#again(productId, use.deviceId, session);
  }

  /**
   * Serves the same key once more. A device that was since removed, or given another key, does not come back this way.
   */
  async #again(productId: string, deviceId: string, session: Session): Promise<Success | Refusal> {
    const device = await this.#options.store.device(productId, deviceId);
    const isSame = device?.fingerprint && fingerprintsEqual(device.fingerprint, session.peer.fingerprint);
    return isSame ? { deviceId } : rejected('used');
  }

  async #redeem({ tokenHash, productId, ...invitation }: Invitation, request: JoinRequest, session: Session) {
    const { environment, store } = this.#options;
    const { clock, crypto, log } = environment;
    const deviceId = invitation.deviceId ?? request.deviceId ?? newId('de', (length) => crypto.randomBytes(length));
    if (!areIds(productId, deviceId))
      return refused(StationCode.WRONG_DEVICE_ID, 'a device id is letters, digits, "-" or "_", at most 62 together with the product id');
    const time = new Date(clock.wallTime()).toISOString();
    const { paths, peer } = session;
    const { fingerprint } = peer;
    const result = await store.invitations.redeem({ tokenHash, deviceId, fingerprint, address: paths.active.address, time });
    if (result === 'closed') return null;
    if (result === 'taken')
      return refused(StationCode.DEVICE_ID_IN_USE, `the device id ${deviceId} belongs to a device with another key: choose another one`);
    log.info('device joined', { device: deviceName({ productId, deviceId }), address: placeOfPeer(paths.active), fingerprint });
    return { deviceId };
  }
}

/** @param reason only for the log */
function rejected(reason: string): Refusal {
  return { refused: StationCode.TOKEN_REJECTED, message: REJECTED, reason };
}

function refused(code: StationCode, message: string): Refusal {
  return { refused: code, message, reason: message };
}
