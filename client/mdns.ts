/**
 * Discovery of devices on the local network, in the specification's form: a listener of the client, or a scanner with
 * receivers. Each has its own stream of results; those of one client share its sockets.
 *
 * Results prove nothing: any host on the network can announce any ids. Only the handshake of a connection authenticates
 * a device.
 */
import { check, withMethods } from '../protocol/arguments.ts';
import { type DiscoveredService, idsOf, txtEntries } from '../protocol/discovery/index.ts';
import type { MdnsBrowser } from '../runtime/discovery/index.ts';

/** Kinds of changes of a service. */
export const MdnsAction = { ADD: 0, UPDATE: 1, REMOVE: 2 } as const;
export type MdnsAction = (typeof MdnsAction)[keyof typeof MdnsAction];

/** An address of a service. */
export interface MdnsAddress {
  /** Numeric; a link-scoped IPv6 address has its zone, as in `fe80::1%eth0`. */
  readonly address: string;
  readonly port: number;
}

/** One service that was found, changed or removed. */
export interface MdnsResult {
  /** REMOVE: it said goodbye, or its records expired. */
  readonly action: MdnsAction;
  /** Identifies the service: all its results have the same. Never empty. */
  readonly serviceInstanceName: string;
  /** The ids that the service announces; '' when it does not. */
  readonly productId: string;
  readonly deviceId: string;
  /** All items of the TXT record, including `productid`, `deviceid` and `fn` (the friendly name). Untrusted text. */
  readonly txtItems: Readonly<Record<string, string>>;
  /** At least one. For REMOVE: the former addresses. */
  readonly addresses: readonly MdnsAddress[];
}

/** Receives results. Its errors are logged. */
export interface MdnsResultReceiver {
  onResultReady(result: MdnsResult): void;
}

const RECEIVER = withMethods('onResultReady');

/** The listeners of a client, each for the service type and for any number of subtypes. */
export class MdnsListeners {
  readonly #browser: MdnsBrowser;
  readonly #ends = new Map<MdnsResultReceiver, Map<string, () => void>>();

  constructor(browser: MdnsBrowser) {
    this.#browser = browser;
  }

  add(receiver: MdnsResultReceiver, subtype: string | null): void {
    check('the mDNS result listener', receiver, RECEIVER);
    this.#browser.check(subtype);
    const ends = this.#ends.get(receiver) ?? new Map<string, () => void>();
    const key = (subtype ?? '').toLowerCase();
    if (ends.has(key)) return;
    ends.set(key, listen(this.#browser, subtype, receiver));
    this.#ends.set(receiver, ends);
  }

  remove(receiver: MdnsResultReceiver): void {
    for (const end of this.#ends.get(receiver)?.values() ?? []) end();
    this.#ends.delete(receiver);
  }
}

/** Scans for services while it is started. Created by `SvcClient.createMdnsScanner`. */
export class MdnsScanner {
  readonly #browser: MdnsBrowser;
  readonly #subtype: string | null;
  /** Each with the function that ends its listening, null while the scanner is not started. */
  readonly #receivers = new Map<MdnsResultReceiver, (() => void) | null>();
  #started = false;

  /** For `SvcClient.createMdnsScanner`. */
  constructor(browser: MdnsBrowser, subtype: string | null) {
    this.#browser = browser;
    this.#subtype = subtype;
  }

  /**
   * Begins to scan and passes results to all receivers. Does nothing when it is started.
   * @throws LocalError STOPPED when the client is stopped
   */
  start(): void {
    if (this.isStarted()) return;
    this.#browser.check(this.#subtype);
    this.#started = true;
    for (const receiver of this.#receivers.keys()) this.#receivers.set(receiver, this.#listen(receiver));
  }

  /** Ends the scan. A later start reports existing services as ADD. Does nothing when it is not started. */
  stop(): void {
    this.#started = false;
    for (const [receiver, end] of this.#receivers) {
      end?.();
      this.#receivers.set(receiver, null);
    }
  }

  /** False before `start`, after `stop`, and when the client is stopped. */
  isStarted(): boolean {
    return this.#started && !this.#browser.isClosed;
  }

  /**
   * Passes results to the receiver, known services as ADD. Adding a receiver twice has no effect.
   * @throws LocalError INVALID_ARGUMENT
   */
  addMdnsResultReceiver(receiver: MdnsResultReceiver): void {
    check('the mDNS result receiver', receiver, RECEIVER);
    if (!this.#receivers.has(receiver)) this.#receivers.set(receiver, this.isStarted() ? this.#listen(receiver) : null);
  }

  /** Removes a receiver. Does nothing for one that was not added. */
  removeMdnsResultReceiver(receiver: MdnsResultReceiver): void {
    this.#receivers.get(receiver)?.();
    this.#receivers.delete(receiver);
  }

  #listen(receiver: MdnsResultReceiver): () => void {
    return listen(this.#browser, this.#subtype, receiver);
  }
}

function listen(browser: MdnsBrowser, subtype: string | null, receiver: MdnsResultReceiver): () => void {
  return browser.browse(subtype, (change) => receiver.onResultReady({ action: MdnsAction[change.action], ...contentsOf(change.service) }));
}

function contentsOf({ name, txt, endpoints }: DiscoveredService): Omit<MdnsResult, 'action'> {
  const items = txt ?? [];
  return { serviceInstanceName: name, ...idsOf(items), txtItems: Object.fromEntries(txtEntries(items)), addresses: endpoints };
}
