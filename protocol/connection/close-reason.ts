/** The reason phrase of CONNECTION_CLOSE (RFC 9000 §19.19). */
const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** A reason is truncated to this length, bytes: it must fit a packet with everything else. */
const MAX_REASON = 200;

/** Encodes a reason for the packet. */
export function encodeReason(reason: string): Uint8Array {
  return encoder.encode(reason).subarray(0, MAX_REASON);
}

/** Decodes the peer's reason, without control characters: it is shown in terminals and logs. */
export function decodeReason(bytes: Uint8Array): string {
  return decoder.decode(bytes).replace(/[\p{Cc}\p{Cf}]/gu, '?');
}
