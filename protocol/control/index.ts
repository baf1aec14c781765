/** Bodies, paths and errors of the control plane between device, client and base station. */
export type { KeepAlive } from '../../bindings/options.ts';
export { decodeSeenAddress, encodeSeenAddress, type SocketAddress } from './address.ts';
export * from './attach.ts';
export * from './connect.ts';
export * from './errors.ts';
export {
  JOIN_TOKEN,
  MAX_APP_TEXT,
  MAX_CANDIDATES,
  MAX_JWT,
  MAX_PROJECT_ID,
  MAX_PUSH_ANSWER,
  MAX_PUSH_BODY,
  MAX_SCT,
  MAX_SCTS,
  MAX_SERVER_KEY,
  MAX_SERVICE_MESSAGE,
} from './field-bounds.ts';
export * from './join.ts';
export * from './paths.ts';
export type { Redirect } from './redirect.ts';
export * from './relayed.ts';
export * from './rendezvous.ts';
export type { StunServer } from './stun.ts';
