/**
 * The record of a tunnel service (PROTOCOL.md §7.12, §12), in the answers of `/tcp-tunnels/services/:id` and
 * `/tcp-tunnels/connect/:id`, and of `/udp-tunnels/…` likewise.
 */
import { array, decode, encode, map, optionalMapField, optionalUint, text, texts, textValue, uint } from '../cbor/index.ts';
import { RemoteError } from '../errors/index.ts';

/** A tunnel service as clients see it. */
export interface TunnelServiceRecord {
  readonly id: string;
  readonly type: string;
  /** Address at which the device reaches the service. */
  readonly host: string;
  readonly port: number;
  /** Stream port of the service, u32. */
  readonly streamPort: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** UDP: datagrams that the device has lost since it offers the service; undefined: it does not say. */
  readonly lost?: number | undefined;
}

const MAX_NAME = 64;
const MAX_HOST = 255;
const MAX_SERVICES = 1024;
const MAX_METADATA = 256;
const MAX_METADATA_TEXT = 1023;

/** Body of the answer to `GET /tcp-tunnels/services/:id` and `/tcp-tunnels/connect/:id`, and of the same for UDP. */
export function encodeTunnelService({ id, type, host, port, streamPort, metadata, lost }: TunnelServiceRecord): Uint8Array {
  const record = { Id: id, Type: type, Host: host, Port: port, StreamPort: streamPort, Metadata: metadata };
  return encode(lost === undefined ? record : { ...record, Lost: lost });
}

/** A missing Metadata means none. @throws RemoteError PARSE */
export function decodeTunnelService(payload: Uint8Array): TunnelServiceRecord {
  const body = map(decode(payload));
  return {
    id: text(body, 'Id', { min: 1, max: MAX_NAME }),
    type: text(body, 'Type', { max: MAX_NAME }),
    host: text(body, 'Host', { max: MAX_HOST }),
    port: uint(body, 'Port', { max: 0xffff }),
    streamPort: uint(body, 'StreamPort', { max: 0xffffffff }),
    metadata: readMetadata(optionalMapField(body, 'Metadata') ?? {}),
    lost: optionalUint(body, 'Lost'),
  };
}

/** Body of the answer to `GET /tcp-tunnels/services` and `GET /udp-tunnels/services`. */
export function encodeTunnelServiceIds(ids: readonly string[]): Uint8Array {
  return encode(ids);
}

/** @throws RemoteError PARSE */
export function decodeTunnelServiceIds(payload: Uint8Array): string[] {
  return texts(array(decode(payload), 'services', MAX_SERVICES), 'services', { min: 1, max: MAX_NAME });
}

function readMetadata(from: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(from);
  if (entries.length > MAX_METADATA) throw new RemoteError('PARSE', `Metadata has more than ${MAX_METADATA} entries`);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, textValue(value, `Metadata.${key.slice(0, 32)}`, { max: MAX_METADATA_TEXT })]),
  );
}
