/**
 * One authenticated connection, as an application holds it.
 *
 * Bytes that an application, or a tunnel's pump (`platform/node/tcp.ts`), writes to a stream reach the socket in these
 * steps:
 *
 * 1. The stream waits for room.
 * 2. `bindings/` copies the bytes once into linear memory, where `core-as/streams/send.ts` keeps them in the stream's
 *    chunks.
 * 3. `runtime/driver.ts` asks the endpoint for packets, which asks each connection that has any.
 * 4. `core-as/connection/transmit.ts` fills up to 32 packet slots or 192 KiB per call, whichever comes first, as far as
 *    the window (`congestion/`) and the pacer allow: `recovery/ack-policy.ts` writes the ACK, `streams/scheduler.ts`
 *    chooses the bytes, `recovery/mtu.ts` decides when to probe for a larger packet, `packet/protection.ts` encrypts in
 *    place, and `recovery/sent.ts` records what the packet carried.
 * 5. `platform/node/udp.ts` sends views of the slots, and releases each slot when its packet has left.
 *
 * Per packet there is at most one crossing of the wasm boundary, no JavaScript object of our own, and no BigInt.
 */

export { type DatagramLoss, DatagramLossReport, lossText } from './datagram-loss.ts';
export { type DatagramCounts, type DatagramFlow, noDatagrams } from './datagrams.ts';
export type { IncomingStream } from './incoming-stream.ts';
export { SessionPaths } from './paths.ts';
export type { Observation, SessionRequest } from './requests.ts';
export { Session } from './session.ts';
export type { SessionEvents } from './session-events.ts';
export { Stream, type StreamStats } from './stream.ts';
export type { StreamOptions } from './streams.ts';
