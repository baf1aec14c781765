/** `svc admin device …`: which devices may attach, and with which key. */
import { Command } from 'commander';
import { addDevice, type Device, removeDevice, setFingerprint } from '../../server/administration/index.ts';
import { fingerprint, id } from '../frame/arguments.ts';
import { type AdminOptions, administer, adminSubcommand, label, printList } from './shared.ts';

/** `svc admin device add|list|set-fingerprint|remove`. */
export function adminDevice(): Command {
  return new Command('device')
    .description('devices')
    .addCommand(add())
    .addCommand(list())
    .addCommand(setDeviceFingerprint())
    .addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add a device')
    .argument('<product>', 'product id', id)
    .argument('[device]', 'device id; made up when left out', id)
    .option('--fingerprint <hex>', 'full fingerprint of its key, 64 hex digits; without it the device cannot attach yet', fingerprint)
    .option('--name <name>', 'a friendly name', label)
    .action((productId: string, deviceId: string | undefined, options: AdminOptions & { fingerprint?: string; name?: string }) =>
      administer(options, async (administration, output) => {
        const { fingerprint, name } = options;
        const device = await addDevice(administration, { productId, deviceId, fingerprint, name });
        output.result(device, device.deviceId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list devices')
    .argument('[product]', 'only those of this product', id)
    .action((productId: string | undefined, options: AdminOptions) =>
      administer(options, async ({ store }, output) => {
        const line = (each: Device): string => [each.productId, each.deviceId, each.fingerprint ?? '-', each.name ?? ''].join('\t');
        printList(output, await store.devices(productId), line, 'no devices');
      }),
    );
}

function setDeviceFingerprint(): Command {
  return adminSubcommand('set-fingerprint', 'give a device another key; counts from its next attach')
    .argument('<product>', 'product id', id)
    .argument('<device>', 'device id', id)
    .argument('<fingerprint>', 'full fingerprint, 64 hex digits', fingerprint)
    .action((productId: string, deviceId: string, value: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await setFingerprint(administration, { productId, deviceId }, value);
        output.result({ productId, deviceId, fingerprint: value }, `${deviceId} now has fingerprint ${value}`);
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a device')
    .argument('<product>', 'product id', id)
    .argument('<device>', 'device id', id)
    .action((productId: string, deviceId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await removeDevice(administration, { productId, deviceId });
        output.result({ removed: deviceId, productId }, `removed ${deviceId}`);
      }),
    );
}
