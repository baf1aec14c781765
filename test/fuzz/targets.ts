/** Everything that is fuzzed. */
import { coreTarget } from './core.ts';
import { discoveryTargets } from './discovery.ts';
import { endpointTarget } from './endpoint.ts';
import { exchangesTarget } from './exchanges.ts';
import { parserTargets } from './parsers.ts';
import { agentTarget } from './rendezvous.ts';
import { serviceTargets } from './services.ts';
import { sessionTarget } from './sessions.ts';
import { stunTarget } from './stun.ts';
import type { Target } from './target.ts';
import { tokenTargets } from './tokens.ts';
import { transferTarget } from './transfers.ts';
import { upgradeTargets } from './upgrades.ts';

export const targets: readonly Target[] = [
  ...parserTargets,
  ...serviceTargets,
  ...discoveryTargets,
  ...tokenTargets,
  ...upgradeTargets,
  stunTarget,
  agentTarget,
  exchangesTarget,
  endpointTarget,
  coreTarget,
  transferTarget,
  sessionTarget,
];
