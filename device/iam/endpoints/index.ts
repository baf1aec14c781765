/** The CoAP endpoints of access control. */
import type { CoapResources } from '../../coap-resources.ts';
import type { Iam } from '../iam.ts';
import { ChangeRates } from './change-rates.ts';
import { serve } from './endpoint.ts';
import type { IamHost } from './host.ts';
import { PairingRates } from './pairing-rates.ts';
import { PushTests } from './push-test.ts';
import { iamEndpoints } from './table.ts';

export type { DeviceFacts, IamHost } from './host.ts';

/** Adds every endpoint below `/iam`. @throws LocalError IN_USE when they are there */
export function installIamEndpoints(resources: CoapResources, iam: Iam, host: IamHost): void {
  const service = {
    iam,
    host,
    pushTests: new PushTests(host),
    pairingRates: new PairingRates(),
    changeRates: new ChangeRates(() => host.clock.now()),
  };
  for (const each of iamEndpoints) resources.addOwn(each.method, each.path, (request) => serve(each, service, request));
}
