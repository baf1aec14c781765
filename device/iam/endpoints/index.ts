/** The CoAP endpoints of access control. */

import { Rates } from '../../../protocol/rates.ts';
import type { CoapResources } from '../../coap-resources.ts';
import type { Iam } from '../iam.ts';
import { deviceEndpoints } from './device.ts';
import type { DeviceFacade } from './device-facade.ts';
import { type IamEndpoint, serve } from './endpoint.ts';
import { pairingEndpoints } from './pairing.ts';
import { PairingRates } from './pairing-rates.ts';
import { PushTests } from './push-test.ts';
import { userSettingEndpoints } from './user-settings.ts';
import { userEndpoints } from './users.ts';

export type { DeviceFacade, DeviceFacts } from './device-facade.ts';

/**
 * How often a user may change its own record: changes at once, and seconds for one more. Each change is saved and
 * recorded in the audit log: without a rate, the lowest role could rotate everything out of the log within a minute.
 * Changes to other users need rights over those users, and have no rate.
 */
export const CHANGE_BURST = 30;
export const CHANGE_SECONDS = 2;

/** Every endpoint (docs/iam.md). */
export const iamEndpoints: readonly IamEndpoint[] = [...pairingEndpoints, ...deviceEndpoints, ...userEndpoints, ...userSettingEndpoints];

/** Adds every endpoint below `/iam`. @throws LocalError IN_USE when they exist */
export function installIamEndpoints(resources: CoapResources, iam: Iam, device: DeviceFacade): void {
  const service = {
    iam,
    device,
    pushTests: new PushTests(device),
    pairingRates: new PairingRates(),
    changeRates: new Rates(1 / CHANGE_SECONDS, CHANGE_BURST),
  };
  for (const each of iamEndpoints) resources.addOwn(each.method, each.path, (request) => serve(each, service, request));
}
