/** Paths of the control plane (PROTOCOL.md §7), each with the kind of channel it is served on. */
import { ContentFormat } from '../coap/index.ts';

/** Content format of every body of the control plane. */
export const CONTENT_FORMAT_CBOR = ContentFormat.APPLICATION_CBOR;

/** Device → base station. */
export const DevicePath = {
  /** POST */
  ATTACH: '/device/attach',
  /** POST, also from a device that is not registered yet */
  JOIN: '/device/join',
  /** PUT */
  SCT: '/device/sct',
  /** DELETE */
  ROUTE: '/device/route',
  /** GET */
  ADDRESS: '/device/address',
  /** POST */
  PUSH_SEND: '/device/push/send',
  /** POST */
  SERVICE_INVOKE: '/device/service/invoke',
} as const;

/** Client → base station. */
export const ClientPath = {
  /** POST */
  CONNECT: '/client/connect',
  /** DELETE */
  ROUTE: '/client/route',
  /** GET */
  ADDRESS: '/client/address',
} as const;

/** Base station → device: this one only. */
export const StationPath = {
  /** POST */
  P2P_CONNECT: '/p2p/connect',
} as const;

/** Client → device, inside their connection. */
export const ConnectionPath = {
  /** POST with Observe, then PUT */
  RENDEZVOUS: '/p2p/rendezvous',
} as const;
