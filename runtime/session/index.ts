/** One authenticated connection, as an application holds it. */

export { type DatagramLoss, DatagramLossReport, lossText } from './datagram-loss.ts';
export { type DatagramCounts, type DatagramFlow, noDatagrams } from './datagrams.ts';
export type { IncomingStream } from './incoming-stream.ts';
export { SessionPaths } from './paths.ts';
export type { Observation, SessionRequest } from './requests.ts';
export { Session } from './session.ts';
export type { SessionEvents } from './session-events.ts';
export { SessionStream, type StreamStats } from './stream.ts';
