/**
 * Names that a scanner takes from the network. It may have to query a name it keeps, so it accepts only names that it
 * can encode again.
 */
import { checkSubtype, isSubtype, SERVICE_TYPE, subtypeName } from './service.ts';

/** Maximum bytes of a label and of a name (RFC 1035 §2.3.4). */
const MAX_LABEL = 63;
const MAX_NAME = 255;

const INSTANCE_SUFFIX = `.${SERVICE_TYPE}`;
const HOST_SUFFIX = '.local';

/** Control characters (RFC 6763 §4.1.1), and the replacement character that a decoder writes for invalid UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNWRITABLE = /[\x00-\x1f\x7f\ufffd]/;

/**
 * Returns the name whose PTR records list services: the service type for null and '', else a subtype.
 * @throws LocalError INVALID_ARGUMENT
 */
export function browsedName(subtype: string | null): string {
  return subtype === null || subtype === '' ? SERVICE_TYPE : subtypeName(checkSubtype(subtype));
}

/**
 * Returns the instance of a device (PROTOCOL.md §11); null when its name is not a valid subtype, so that no device
 * announces it.
 */
export function instanceOf(productId: string, deviceId: string): string | null {
  const label = `${productId}-${deviceId}`;
  return isSubtype(label) ? `${label}${INSTANCE_SUFFIX}` : null;
}

/**
 * Returns whether this is `<one label>._svc._udp.local`. A label that contains a dot cannot be distinguished from two
 * labels.
 */
export function isInstanceName(name: string): boolean {
  return endsWith(name, INSTANCE_SUFFIX) && isLabel(labelOf(name));
}

/** Returns the label in front of the service type. */
export function labelOf(instance: string): string {
  return instance.slice(0, -INSTANCE_SUFFIX.length);
}

/** Returns the host name that a device announces beside its instance. */
export function hostOf(instance: string): string {
  return `${labelOf(instance)}${HOST_SUFFIX}`;
}

/** Returns whether multicast DNS can resolve this host name. */
export function isHostName(name: string): boolean {
  return endsWith(name, HOST_SUFFIX) && byteLength(name) + 2 <= MAX_NAME && name.split('.').every(isLabel);
}

function isLabel(text: string): boolean {
  return text !== '' && !text.includes('.') && !UNWRITABLE.test(text) && byteLength(text) <= MAX_LABEL;
}

function endsWith(name: string, suffix: string): boolean {
  return name.slice(-suffix.length).toLowerCase() === suffix;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
