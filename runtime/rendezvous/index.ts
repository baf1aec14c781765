/**
 * Finds direct paths for relayed connections: the rendezvous of both ends over real sockets (PROTOCOL.md §6.6).
 * Decisions are in `protocol/rendezvous/`.
 *
 * A host has one `LocalEnd`: it receives STUN before the engine does (`stun-dispatcher.ts`), gathers candidates
 * (`gatherer.ts`), and has a port mapped by routers (`port-mapping/`). `agent-runner.ts` runs an agent at either end:
 * `attempt.ts` is the client's side of a round over its session, `responder.ts` the device's. `direct-search.ts`
 * decides for one connection of a client when to attempt, which pair becomes a path, and what follows when a path is
 * lost. Validation, migration and failover belong to the core, which knows nothing of candidates.
 */
export { AgentRunner } from './agent-runner.ts';
export { DirectSearch, type DirectSearchOptions } from './direct-search.ts';
export { Gatherer, type GathererOptions } from './gatherer.ts';
export { LocalEnd, type LocalEndOptions } from './local-end.ts';
export type { PathReport, PathsReport, PathTimes, StationReport } from './paths-report.ts';
export { classOf, idleReport, pathReports, restReport, stationReport } from './paths-report.ts';
export { isPeerAddress } from './peer-address.ts';
export { type RendezvousHost, rendezvousHost } from './rendezvous-host.ts';
export { type PeerTrust, RendezvousResponder, type ResponderOptions } from './responder.ts';
export { Searches, type SearchKind } from './searches.ts';
export type { AskingSession, MigratingSession, ServingSession } from './sessions.ts';
export { type StationView, stationView } from './station-view.ts';
export { StunDispatcher } from './stun-dispatcher.ts';
