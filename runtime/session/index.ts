/** One authenticated connection, as an application holds it. */
export { type DatagramCounts, type DatagramFlow, noDatagrams } from './datagram-flows.ts';
export { type DatagramLoss, DatagramLossReport, lossText } from './datagram-loss.ts';
export type { IncomingStream } from './incoming-stream.ts';
export type { Observation, SessionRequest } from './requests.ts';
export { Session } from './session.ts';
export type { SessionEvents } from './session-events.ts';
export { SessionStream } from './stream.ts';
export type { StreamStats } from './stream-carrier.ts';
