/** Every IAM endpoint (interface.md §4.2, reference §1.1 to §1.4). */
import type { IamEndpoint } from './endpoint.ts';
import { me } from './users.ts';

export const iamEndpoints: readonly IamEndpoint[] = [me];
