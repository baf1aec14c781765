/**
 * Writes the parameters that `connectionOpen` reads from the transfer area; core-as/connection/open.ts defines the
 * layout.
 */
import { Congestion } from './codes.generated.ts';
import { LocalError } from './error.ts';
import type { CongestionControl, CoreConnectionOptions, DataParameters } from './options.ts';

/** Layout of core-as/connection/open.ts: bytes of a key and of an id, then offsets. */
const KEY_LENGTH = 32;
const ID_LENGTH = 8;
const IDS_AT = 128;
const FIELDS_AT = 144;
const CHALLENGE_SEED_AT = 480;
const COMPLETE_AT = 512;
const MAX_COMPLETE = 1_000;
/** Every path of the Internet carries it (RFC 9000 §14). */
const DEFAULT_SIZE = 1_200;
const DEFAULT_CONGESTION: CongestionControl = 'bbr';
/** Largest values of the core's fields: u16 and, for credit, i32. */
const MAX_SHORT = 0xffff;
const MAX_CREDIT = 0x7fff_ffff;

/** @throws LocalError INVALID_ARGUMENT for a value of the wrong length */
export function writeParameters(area: Uint8Array, options: CoreConnectionOptions): void {
  const { complete, keepAlive, packetSize = DEFAULT_SIZE, packetCeiling = packetSize } = options;
  const keys = [options.sendKey, options.receiveKey, options.sendMaskKey, options.receiveMaskKey];
  for (const [index, key] of keys.entries()) area.set(exactly(key, KEY_LENGTH, 'key'), index * KEY_LENGTH);
  area.set(exactly(options.localId, ID_LENGTH, 'id'), IDS_AT);
  area.set(exactly(options.remoteId, ID_LENGTH, 'id'), IDS_AT + ID_LENGTH);
  area.set(exactly(options.challengeSeed, KEY_LENGTH, 'challenge seed'), CHALLENGE_SEED_AT);
  if (complete && complete.length > MAX_COMPLETE)
    throw new LocalError('INVALID_ARGUMENT', `Complete has ${complete.length} bytes, at most ${MAX_COMPLETE} fit`);
  if (complete) area.set(complete, COMPLETE_AT);
  const fields = [
    options.initiator ? 1 : 0,
    options.now,
    options.skipSeed >>> 0,
    packetSize,
    complete?.length ?? 0,
    keepAlive?.interval ?? 0,
    keepAlive?.retryInterval ?? 0,
    keepAlive?.maxRetries ?? 0,
    ...end(options.local),
    ...end(options.remote),
    controller(options.congestion ?? DEFAULT_CONGESTION),
    packetCeiling,
    options.rtt ?? 0,
  ];
  const view = new DataView(area.buffer, area.byteOffset + FIELDS_AT);
  for (const [index, value] of fields.entries()) view.setFloat64(index * 8, value, true);
}

function end(parameters: DataParameters): number[] {
  const short = (value: number) => Math.min(value, MAX_SHORT);
  return [
    parameters.idleTimeout,
    parameters.maxUdpPayload,
    Math.min(parameters.initialMaxData, MAX_CREDIT),
    Math.min(parameters.initialMaxStreamData, MAX_CREDIT),
    short(parameters.maxStreams),
    short(parameters.maxMessages),
    short(parameters.maxAckDelay),
    short(parameters.maxDatagram),
  ];
}

function controller(name: CongestionControl): number {
  const code = { newreno: Congestion.NEWRENO, cubic: Congestion.CUBIC, bbr: Congestion.BBR }[name] as number | undefined;
  if (code === undefined) throw new LocalError('INVALID_ARGUMENT', `there is no congestion control named ${name}`);
  return code;
}

function exactly(bytes: Uint8Array, length: number, what: string): Uint8Array {
  if (bytes.length !== length) throw new LocalError('INVALID_ARGUMENT', `the ${what} must have ${length} bytes, not ${bytes.length}`);
  return bytes;
}
