/** Names that a scanner takes from the network: what it keeps it may also ask for, so it takes only what can be written again. */
import { checkSubtype, isSubtype, SERVICE_TYPE, subtypeName } from './service.ts';

/** Bytes of a label and of a name (RFC 1035 §2.3.4). */
const MAX_LABEL = 63;
const MAX_NAME = 255;

const INSTANCE_SUFFIX = `.${SERVICE_TYPE}`;
const HOST_SUFFIX = '.local';

/** Control characters (RFC 6763 §4.1.1), and what a decoder writes for bytes that are no UTF-8. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNWRITABLE = /[\x00-\x1f\x7f\ufffd]/;

/** The name whose PTR records list services: of the service type for null and '', else of a subtype. @throws LocalError INVALID_ARGUMENT */
export function browsedName(subtype: string | null): string {
  return subtype === null || subtype === '' ? SERVICE_TYPE : subtypeName(checkSubtype(subtype));
}

/** The instance of a device (PROTOCOL.md §11); null when its name can be no subtype, so that no device is announced by it. */
export function instanceOf(productId: string, deviceId: string): string | null {
  const label = `${productId}-${deviceId}`;
  return isSubtype(label) ? `${label}${INSTANCE_SUFFIX}` : null;
}

/** Whether this is `<one label>._svc._udp.local`. A label with a dot in it cannot be told from two. */
export function isInstanceName(name: string): boolean {
  return endsWith(name, INSTANCE_SUFFIX) && isLabel(labelOf(name));
}

/** The label in front of the service type. */
export function labelOf(instance: string): string {
  return instance.slice(0, -INSTANCE_SUFFIX.length);
}

/** The host that a device of this repository has beside its instance. */
export function hostOf(instance: string): string {
  return `${labelOf(instance)}${HOST_SUFFIX}`;
}

/** Whether multicast DNS can be asked for this host. */
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
