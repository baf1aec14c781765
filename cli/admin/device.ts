/** `svc admin device …`: which devices may attach, and with which key. */
import { Command } from 'commander';
import {
  type AttachedDevice,
  addDevice,
  type Device,
  readStatus,
  removeDevice,
  setFingerprint,
} from '../../server/administration/index.ts';
import { fingerprint, id } from '../frame/arguments.ts';
import { minuteOf } from '../frame/duration.ts';
import { table } from '../frame/table.ts';
import { adminDeviceInvite } from './device-invite.ts';
import { type AdminOptions, administer, adminSubcommand, label } from './shared.ts';

/** `svc admin device add|invite|list|set-fingerprint|remove`. */
export function adminDevice(): Command {
  return new Command('device')
    .description('devices')
    .addCommand(add())
    .addCommand(adminDeviceInvite())
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
  return adminSubcommand('list', 'list devices: which are attached now, since when, and from where')
    .argument('[product]', 'only those of this product', id)
    .action((productId: string | undefined, options: AdminOptions) =>
      administer(options, async ({ store }, output) => {
        const status = await readStatus(options.data);
        const attached = status && new Map(status.attached.map((each) => [nameOf(each), each]));
        const devices = (await store.devices(productId)).map((device) => ({ ...device, ...attachmentOf(device, attached) }));
        const headings = ['product', 'device', 'attached', 'since', 'address', 'name', 'key'];
        output.result(devices, devices.length === 0 ? 'no devices' : table(headings, devices.map(cells)));
        if (status === null && devices.length > 0)
          output.note(`no base station runs on ${options.data}: which devices are attached is not known`);
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

/** What the list says of a device beside its record. */
interface Attachment {
  /** Null: no base station runs that could say it. */
  readonly attached: boolean | null;
  /** ISO 8601 UTC. */
  readonly since: string | null;
  /** `address:port` where the base station sees it. */
  readonly address: string | null;
}

/** @param all by {@link nameOf}; null: not known */
function attachmentOf(device: Device, all: ReadonlyMap<string, AttachedDevice> | null): Attachment {
  const found = all?.get(nameOf(device));
  return { attached: all && found !== undefined, since: found?.since ?? null, address: found?.address ?? null };
}

function cells({ productId, deviceId, attached, since, address, name, fingerprint }: Device & Attachment): string[] {
  const state = attached === null ? '?' : attached ? 'yes' : 'no';
  return [productId, deviceId, state, since === null ? '' : minuteOf(since), address ?? '', name ?? '', fingerprint ?? ''];
}

/** The dot stands in no id. */
function nameOf({ productId, deviceId }: Pick<Device, 'productId' | 'deviceId'>): string {
  return `${productId}.${deviceId}`;
}
