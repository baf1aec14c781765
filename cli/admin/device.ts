/** `svc admin device …`: which devices may attach, and with which key. */
import { Command } from 'commander';
import { areIds } from '../../protocol/records/ids.ts';
import { type Device, newId } from '../../server/admin.ts';
import { fingerprint, id } from '../frame/arguments.ts';
import { UsageError } from '../frame/errors.ts';
import { type AdminOptions, adminSubcommand, expectFound, label, printList, withStore } from './shared.ts';

const KNOWN = 'svc admin device list';

/** `svc admin device add|list|set-fingerprint|remove`. */
export function adminDevice(): Command {
  return new Command('device')
    .description('devices')
    .addCommand(add())
    .addCommand(list())
    .addCommand(setFingerprint())
    .addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add a device')
    .argument('<product>', 'product id', id)
    .argument('[device]', 'device id; made up when left out', id)
    .option('--fingerprint <hex>', 'full fingerprint of its key, 64 hex digits; without it the device cannot attach yet', fingerprint)
    .option('--name <name>', 'a friendly name', label)
    .action((productId: string, deviceId: string | undefined, options: AdminOptions & { fingerprint?: string; name?: string }) =>
      withStore(options, async ({ store, output, created }) => {
        const device = {
          productId,
          deviceId: deviceId ?? newId('de'),
          name: options.name ?? null,
          fingerprint: options.fingerprint ?? null,
          created,
        };
        if (!areIds(productId, device.deviceId)) throw new UsageError('product id and device id together have at most 62 characters');
        await store.addDevice(device);
        output.result(device, device.deviceId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list devices')
    .argument('[product]', 'only those of this product', id)
    .action((productId: string | undefined, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const line = (each: Device): string => [each.productId, each.deviceId, each.fingerprint ?? '-', each.name ?? ''].join('\t');
        printList(output, await store.devices(productId), line, 'no devices');
      }),
    );
}

function setFingerprint(): Command {
  return adminSubcommand('set-fingerprint', 'give a device another key; counts from its next attach')
    .argument('<product>', 'product id', id)
    .argument('<device>', 'device id', id)
    .argument('<fingerprint>', 'full fingerprint, 64 hex digits', fingerprint)
    .action((productId: string, deviceId: string, value: string, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        expectFound(await store.setFingerprint(productId, deviceId, value), `device ${deviceId} of product ${productId}`, KNOWN);
        output.result({ productId, deviceId, fingerprint: value }, `${deviceId} now has fingerprint ${value}`);
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a device')
    .argument('<product>', 'product id', id)
    .argument('<device>', 'device id', id)
    .action((productId: string, deviceId: string, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        expectFound(await store.removeDevice(productId, deviceId), `device ${deviceId} of product ${productId}`, KNOWN);
        output.result({ removed: deviceId, productId }, `removed ${deviceId}`);
      }),
    );
}
