/**
 * The search of two ends for a direct path between them, without IO (PROTOCOL.md §6).
 *
 * 1. One attempt is a round. `round.ts` sends openers (packets that open this end's own NAT) and checks to the pairs of
 *    both lists of candidates (`pair.ts`), within the budgets of `send-budget.ts`.
 * 2. `agent.ts` adds the sprayed stage, which tries many ports (`volley.ts`, `spray.ts`).
 * 3. `sampler.ts` and `nat-class.ts` find out how a NAT behaves, `prediction.ts` which ports come next.
 * 4. `retry-schedule.ts` decides when to look, `path-choice.ts` which path to take, and `explanation.ts` reports why
 *    there is none.
 *
 * Checks are `protocol/stun/`, the messages between both ends `protocol/control/rendezvous.ts`.
 */
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
export type { LocalView } from './lists.ts';
export { classifyNat, type NatSample } from './nat-class.ts';
export { MAIN_SOCKET, type Pair, type PairKind, type PairReport, type PairState, reportOf } from './pair.ts';
export { comparePaths, migrateAt, type PathClass, VOLUNTARY_PAUSE } from './path-choice.ts';
export { RetrySchedule } from './retry-schedule.ts';
export { Round, type RoundPacket } from './round.ts';
export { type PeerClass, ROUND_LIFETIME, type RoundBudget } from './round-budget.ts';
export { Sampler, type StunAnswer } from './sampler.ts';
export { clientLimits, deviceLimits, HostBudget, SPRAY_LIFETIME } from './send-budget.ts';
