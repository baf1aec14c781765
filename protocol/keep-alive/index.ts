/** Keep-alive: how often PINGs are needed, and how rare they may be. Sans-IO (docs/transport.md §6). */
export { IdleLimit } from './idle-limit.ts';
export { Learner, type LearnerEvent, type MappingReport } from './learner.ts';
export type { ProbePacket } from './mapping-probe.ts';
export {
  defaultProfile,
  isKeepAliveProfile,
  type KeepAliveFacts,
  type KeepAliveProfile,
  keepAliveOf,
  keepAliveProfiles,
  longestOf,
  UNLEARNED_INTERVAL,
} from './profile.ts';
