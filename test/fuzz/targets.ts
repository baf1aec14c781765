/** Everything that is fuzzed. */
import { coreTarget } from './core.ts';
import { discoveryTargets } from './discovery.ts';
import { endpointTarget } from './endpoint.ts';
import { exchangesTarget } from './exchanges.ts';
import { parserTargets } from './parsers.ts';
import { qrTarget } from './qr.ts';
import { agentTarget } from './rendezvous.ts';
import { requestTargets } from './requests.ts';
import { serviceTargets } from './services.ts';
import { sessionTarget } from './sessions.ts';
import { stunTarget } from './stun.ts';
import type { Target } from './target.ts';
import { tokenTargets } from './tokens.ts';
import { transferTarget } from './transfers.ts';
import { upgradeTargets } from './upgrades.ts';
import { webSocketClientTargets } from './web-socket-client.ts';

export const targets: readonly Target[] = [
  ...parserTargets,
  ...serviceTargets,
  ...discoveryTargets,
  ...tokenTargets,
  ...upgradeTargets,
  ...requestTargets,
  ...webSocketClientTargets,
  qrTarget,
  stunTarget,
  agentTarget,
  exchangesTarget,
  endpointTarget,
  coreTarget,
  transferTarget,
  sessionTarget,
];
