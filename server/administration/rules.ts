/**
 * Rules for the values of records. Each function returns the value in its stored form, or throws AdministrationError
 * with the rule.
 */

import { parseAddress } from '../../protocol/address.ts';
import { isFingerprint } from '../../protocol/identity/index.ts';
import { areIds, isId } from '../../protocol/records/ids.ts';
import { addressClass } from '../outbound/addresses.ts';
import { isProviderUrl } from '../push/account.ts';
import { isServerKey } from '../storage/secrets.ts';
import type { ApiKey } from '../storage/store.ts';
import { isIpEntry } from './ip-list.ts';
import { AdministrationError, invalid } from './refusal.ts';

/** ms that an invocation of a service may take, and its default. */
export const ServiceTimeout = { MIN: 100, MAX: 60_000, DEFAULT: 10_000 } as const;

const MAX_URL = 2048;

/** Checks an id of any record. */
export function checkId(id: string): string {
  return isId(id) ? id : invalid('an id is 1 to 61 letters, digits, "-" or "_"');
}

/** Checks the ids of a device together (PROTOCOL.md §1). */
export function checkDeviceIds(productId: string, deviceId: string): void {
  checkId(productId);
  checkId(deviceId);
  if (!areIds(productId, deviceId)) invalid('product id and device id together have at most 62 characters');
}

/** Checks a friendly name. */
export function checkName(name: string): string {
  return /^[^\p{Cc}]{1,100}$/u.test(name) ? name : invalid('a name has 1 to 100 characters and no line breaks');
}

/** Checks an optional name. */
export function nameOrNull(name: string | undefined): string | null {
  return name === undefined ? null : checkName(name);
}

/** Checks a full fingerprint, stored in lower case. */
export function checkFingerprint(fingerprint: string): string {
  const lower = fingerprint.toLowerCase();
  return isFingerprint(lower) ? lower : invalid('a fingerprint is 64 hexadecimal digits');
}

/** Checks a server key that the operator chose. */
export function checkServerKey(key: string): string {
  return isServerKey(key) ? key : invalid('a server key is sk- and 16 to 125 letters, digits, "-" or "_"');
}

/** The action that lets an API key read the records of its organization's other keys. */
export const READ = 'svc:read';

/** Checks an action that an API key grants: one that grants nothing would only look like a right. */
export function checkAction(action: string): string {
  return action === READ ? action : invalid(`the only action is ${READ}: any other grants nothing`);
}

/** Checks an entry of an API key's allow list. */
export function checkIpEntry({ ip, name }: ApiKey['ipWhiteList'][number]): ApiKey['ipWhiteList'][number] {
  if (!isIpEntry(ip)) invalid('an entry of an allow list is an IPv4 or IPv6 address or prefix');
  return name === undefined ? { ip } : { ip, name: checkName(name) };
}

/** Checks the URL of a push provider's HTTP v1 interface, stored without trailing slashes. */
export function checkProviderUrl(url: string): string {
  return isProviderUrl(url) ? url.replace(/\/+$/, '') : invalid('expected an https URL (http only on this machine)');
}

/**
 * Checks the form of a service's URL, stored as the URL standard writes it. {@link checkServiceUrl} decides whether it
 * is allowed.
 */
export function serviceUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === '';
  return isPlain && text.length <= MAX_URL ? url.href : invalid('expected an https URL without user, password and fragment');
}

/**
 * Checks the URL of a service, as far as possible before a name is resolved: https, at an address that a service may
 * have.
 * @param allowPrivate also allows http, this machine and private networks
 */
export function checkServiceUrl(text: string, allowPrivate: boolean): string {
  const href = serviceUrl(text);
  const { protocol, hostname } = new URL(href);
  if (protocol === 'http:' && !allowPrivate)
    throw new AdministrationError({ kind: 'cleartext-url' }, 'an http URL sends messages in cleartext');
  const host = hostname.replace(/^\[|\]$/g, '');
  const kind = parseAddress(host) === null ? 'public' : addressClass(host);
  if (kind === 'never') invalid(`${host} is not an address that a service may have`);
  if (kind === 'private' && !allowPrivate) throw new AdministrationError({ kind: 'private-address' }, `${host} is a private address`);
  return href;
}

/** Checks `iss` or `aud` of a token, which is compared unchanged. @param what the name of the value, for the message */
export function checkJwtText(what: string, text: string): string {
  return /^[^\p{Cc}\s]{1,512}$/u.test(text) ? text : invalid(`${what} has 1 to 512 characters and no blanks`);
}

/** Checks the name of a claim. */
export function checkClaim(name: string): string {
  return /^[\x21-\x7e]{1,128}$/.test(name) ? name : invalid('the name of a claim is 1 to 128 ASCII characters without blanks');
}

/** Checks where the keys of an issuer are. The base station that fetches them decides about private addresses. */
export function checkJwksUri(text: string): string {
  const href = serviceUrl(text);
  const { protocol, hostname } = new URL(href);
  if (protocol !== 'https:') invalid('the keys of an issuer are fetched by https only');
  const host = hostname.replace(/^\[|\]$/g, '');
  if (parseAddress(host) !== null && addressClass(host) === 'never') invalid(`${host} is not an address that an issuer may have`);
  return href;
}

/** Checks the ms that an invocation of a service may take. */
export function checkServiceTimeout(timeout: number): number {
  const { MIN, MAX } = ServiceTimeout;
  const isTimeout = Number.isInteger(timeout) && timeout >= MIN && timeout <= MAX;
  return isTimeout ? timeout : invalid(`a timeout is ${MIN} to ${MAX} milliseconds`);
}
