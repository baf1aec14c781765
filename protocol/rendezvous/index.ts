/** The search of two ends for a direct path between them, without IO (PROTOCOL.md §6). */
export { Agent, type AgentEvent, type AgentOptions, type AgentView } from './agent.ts';
export {
  type AttemptFacts,
  disabledByPeer,
  explain,
  type NotDirect,
  type NotDirectCode,
  notDirect,
  sprayLimited,
  udpBlocked,
} from './explanation.ts';
export { classifyNat, type NatSample } from './nat-class.ts';
export { MAIN_SOCKET, type Pair, type PairKind, type PairState } from './pair.ts';
export { comparePaths, migrateAt, type PathClass, VOLUNTARY_PAUSE } from './path-choice.ts';
export { type PairReport, reportOf } from './report.ts';
export { RetrySchedule } from './retry-schedule.ts';
export { type LocalView, Round, type RoundPacket } from './round.ts';
export { type PeerClass, ROUND_LIFETIME, type RoundBudget } from './round-budget.ts';
export { Sampler, type StunAnswer } from './sampler.ts';
export { clientLimits, deviceLimits, HostBudget, SPRAY_LIFETIME } from './send-budget.ts';
