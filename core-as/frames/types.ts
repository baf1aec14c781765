/** Frame types (RFC 9000 §19, RFC 9221 §4). */

export const PADDING: u64 = 0x00;
export const PING: u64 = 0x01;
export const ACK: u64 = 0x02;
export const ACK_ECN: u64 = 0x03;
export const RESET_STREAM: u64 = 0x04;
export const STOP_SENDING: u64 = 0x05;
/** 0x08…0x0f: bits OFF 4, LEN 2, FIN 1. */
export const STREAM: u64 = 0x08;
export const STREAM_LAST: u64 = 0x0f;
export const STREAM_OFF: u64 = 0x04;
export const STREAM_LEN: u64 = 0x02;
export const STREAM_FIN: u64 = 0x01;
export const MAX_DATA: u64 = 0x10;
export const MAX_STREAM_DATA: u64 = 0x11;
/** Bidirectional: byte streams. */
export const MAX_STREAMS: u64 = 0x12;
/** Unidirectional: messages. */
export const MAX_MESSAGES: u64 = 0x13;
export const DATA_BLOCKED: u64 = 0x14;
export const STREAM_DATA_BLOCKED: u64 = 0x15;
export const STREAMS_BLOCKED: u64 = 0x16;
export const MESSAGES_BLOCKED: u64 = 0x17;
export const NEW_CONNECTION_ID: u64 = 0x18;
export const RETIRE_CONNECTION_ID: u64 = 0x19;
export const PATH_CHALLENGE: u64 = 0x1a;
export const PATH_RESPONSE: u64 = 0x1b;
/** 0x1c: closed by the transport, with the frame type that caused it. 0x1d: closed by the application. */
export const CONNECTION_CLOSE: u64 = 0x1c;
export const APPLICATION_CLOSE: u64 = 0x1d;
/** 0x30 runs to the end of the packet, 0x31 has a length. */
export const DATAGRAM: u64 = 0x30;
export const DATAGRAM_LEN: u64 = 0x31;

/** Result of frame handling besides the transport error codes: drop the packet unacknowledged. */
export const REFUSED: u32 = 0xffff_ffff;
