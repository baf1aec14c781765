/** Devices that may attach, and their keys. */
import { newId } from '../storage/secrets.ts';
import type { Device } from '../storage/store.ts';
import { type Administration, creationTime } from './context.ts';
import { expectFound } from './refusal.ts';
import { checkDeviceIds, checkFingerprint, nameOrNull } from './rules.ts';

/** A device to add; without an id it gets a random one, without a fingerprint it cannot attach yet. */
export interface NewDevice {
  productId: string;
  deviceId?: string | undefined;
  fingerprint?: string | undefined;
  name?: string | undefined;
}

/** An added device; its organization is that of its product. */
export type AddedDevice = Omit<Device, 'organizationId'>;

/**
 * @throws AdministrationError; LocalError INVALID_STATE when the id is taken, NOT_FOUND when there is no such product
 */
export async function addDevice(administration: Administration, request: NewDevice): Promise<AddedDevice> {
  const { productId, deviceId = newId('de', administration.randomBytes), fingerprint, name } = request;
  checkDeviceIds(productId, deviceId);
  const device = {
    productId,
    deviceId,
    name: nameOrNull(name),
    fingerprint: fingerprint === undefined ? null : checkFingerprint(fingerprint),
    created: creationTime(administration),
  };
  await administration.store.addDevice(device);
  return device;
}

/** Gives a device another key; it takes effect with the next attach. @throws AdministrationError not-found, invalid */
export async function setFingerprint(
  { store }: Administration,
  { productId, deviceId }: { productId: string; deviceId: string },
  fingerprint: string,
): Promise<void> {
  const found = await store.setFingerprint(productId, deviceId, checkFingerprint(fingerprint));
  expectFound(found, 'device', deviceId, deviceOf(productId, deviceId));
}

/** @throws AdministrationError not-found */
export async function removeDevice(
  { store }: Administration,
  { productId, deviceId }: { productId: string; deviceId: string },
): Promise<void> {
  expectFound(await store.removeDevice(productId, deviceId), 'device', deviceId, deviceOf(productId, deviceId));
}

function deviceOf(productId: string, deviceId: string): string {
  return `device ${deviceId} of product ${productId}`;
}
