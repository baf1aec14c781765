/** Every IAM endpoint (docs/iam.md). */
import { deviceEndpoints } from './device.ts';
import type { IamEndpoint } from './endpoint.ts';
import { pairingEndpoints } from './pairing.ts';
import { pushTest } from './user-push.ts';
import { userSettingEndpoints } from './user-settings.ts';
import { userEndpoints } from './users.ts';

export const iamEndpoints: readonly IamEndpoint[] = [
  ...pairingEndpoints,
  ...deviceEndpoints,
  ...userEndpoints,
  ...userSettingEndpoints,
  pushTest,
];
