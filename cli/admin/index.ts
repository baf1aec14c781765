/**
 * `svc admin`: the records of a base station, in its data directory. Works while the base station runs: changes take
 * effect at the next attach or connect.
 *
 * Each kind of record has its own file; `shared.ts` holds their common parts, and this file puts them under one
 * command.
 */
import { Command } from 'commander';
import { adminApiKey } from './apikey.ts';
import { adminDevice } from './device.ts';
import { adminKey } from './key.ts';
import { adminOrganization } from './organization.ts';
import { adminProduct } from './product.ts';
import { adminPushCredential } from './push-credential.ts';
import { adminService } from './service.ts';

/** `svc admin` with a command for each kind of record. */
export function adminCommand(): Command {
  return new Command('admin')
    .description('manage products, devices, keys, push credentials and services of a base station, also while it runs')
    .addCommand(adminProduct())
    .addCommand(adminDevice())
    .addCommand(adminKey())
    .addCommand(adminApiKey())
    .addCommand(adminPushCredential())
    .addCommand(adminService())
    .addCommand(adminOrganization());
}
