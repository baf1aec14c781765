/**
 * `svc admin`: what a base station knows, kept in its data directory. Works while the base station runs: changes count from the next
 * attach or connect.
 *
 * Each kind of record has its file, `shared.ts` holds what they share; this one puts them under one command.
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
