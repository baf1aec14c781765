/** The CoAP endpoints of access control. */
import type { CoapResources } from '../../coap-resources.ts';
import type { Iam } from '../iam.ts';
import { ChangeRates } from './change-rates.ts';
import type { DeviceFacade } from './device-facade.ts';
import { serve } from './endpoint.ts';
import { PairingRates } from './pairing-rates.ts';
import { PushTests } from './push-test.ts';
import { iamEndpoints } from './table.ts';

export type { DeviceFacade, DeviceFacts } from './device-facade.ts';

/** Adds every endpoint below `/iam`. @throws LocalError IN_USE when they exist */
export function installIamEndpoints(resources: CoapResources, iam: Iam, device: DeviceFacade): void {
  const service = {
    iam,
    device,
    pushTests: new PushTests(device),
    pairingRates: new PairingRates(),
    changeRates: new ChangeRates(() => device.clock.now()),
  };
  for (const each of iamEndpoints) resources.addOwn(each.method, each.path, (request) => serve(each, service, request));
}
