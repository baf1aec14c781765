/**
 * Bounds of the fields of control messages, in bytes unless noted otherwise. The length of a text is that of its UTF-8.
 */

/** `<productId>-<deviceId>` is a DNS label (63). */
export const MAX_ID = 61;
/** Application name and version (PROTOCOL.md §7). */
export const MAX_APP_TEXT = 32;
/** Version of this software. */
export const MAX_VERSION = 64;
export const MAX_HOST = 255;
/** Token of an invitation to join: exactly 128 bits. */
export const JOIN_TOKEN = 16;
/** A server connect token. */
export const MAX_SCT = 64;
/** Tokens of one device. */
export const MAX_SCTS = 4096;
export const MAX_SERVER_KEY = 128;
export const MAX_JWT = 8192;
/** An Initiate or Respond packet; both fit the smallest datagram. */
export const MAX_PACKET = 1500;
/** Text of an error body. */
export const MAX_ERROR_TEXT = 512;
/**
 * Push (PROTOCOL.md §7.11): the document for the provider, and the part of the provider's answer that a device keeps.
 */
export const MAX_PROJECT_ID = 255;
export const MAX_PUSH_BODY = 65_536;
export const MAX_PUSH_ANSWER = 4096;
/** Service invocation (PROTOCOL.md §7.11). */
export const MAX_SERVICE_ID = 64;
export const MAX_SERVICE_MESSAGE = 65_536;
/** Largest keep-alive interval, ms: one day. */
export const MAX_INTERVAL = 86_400_000;
/** Shortest keep-alive interval, ms: a base station may not make a device send without pause. */
export const MIN_INTERVAL = 100;
/** Candidates of one end in a rendezvous. A conforming end never sends more. */
export const MAX_CANDIDATES = 8;
