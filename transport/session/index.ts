/** One authenticated connection, as an application holds it. */
export { type DatagramCounts, type DatagramFlow, noDatagrams } from './datagram-flows.ts';
export type { IncomingStream } from './incoming-stream.ts';
export type { Observation, SessionRequest } from './requests.ts';
export { Session, type SessionEvents } from './session.ts';
export { SessionStream, type StreamStats } from './stream.ts';
