/**
 * Finds direct paths for relayed connections: the rendezvous of both ends over real sockets (PROTOCOL.md §6.6).
 * Decisions are in `protocol/rendezvous/`.
 */
export { AgentRunner } from './agent-runner.ts';
export { DirectSearch, type DirectSearchOptions, type SearchKind } from './direct-search.ts';
export { Gatherer, type GathererOptions } from './gatherer.ts';
export { LocalEnd, type LocalEndOptions } from './local-end.ts';
export type { PathReport, PathsReport, PathTimes, StationReport } from './paths-report.ts';
export { classOf, idleReport, pathReports, restReport, stationReport } from './paths-report.ts';
export { isPeerAddress } from './peer-address.ts';
export { type RendezvousHost, rendezvousHost } from './rendezvous-host.ts';
export { type PeerTrust, RendezvousResponder, type ResponderOptions } from './responder.ts';
export { Searches } from './searches.ts';
export type { AskingSession, MigratingSession, ServingSession } from './sessions.ts';
export { type StationView, stationView } from './station-view.ts';
export { StunDispatcher } from './stun-dispatcher.ts';
