/**
 * Discovery of devices on the local network, in the specification's form: a listener of the client, or a scanner with receivers. Each has a stream of its own
 * results; all of one client share its sockets.
 *
 * Results prove nothing: anybody on the network can announce any ids. Who a device is, the handshake of a connection says.
 */
import { type DiscoveredService, idsOf, type ServiceChange, txtEntries } from '../protocol/discovery/index.ts';
import type { MdnsBrowser } from '../transport/discovery/index.ts';

/** What has become of a service (reference §3). */
export const MdnsAction = { ADD: 0, UPDATE: 1, REMOVE: 2 } as const;
export type MdnsAction = (typeof MdnsAction)[keyof typeof MdnsAction];

/** Where a service can be reached. */
export interface MdnsAddress {
  /** Numeric; an IPv6 address that counts on one link alone has that link's zone, as in `fe80::1%eth0`. */
  readonly address: string;
  readonly port: number;
}

/** One service that was found, has changed or has gone. */
export interface MdnsResult {
  /** REMOVE: it said goodbye, or was not heard for the life of its records. */
  readonly action: MdnsAction;
  /** Names the service: results of one service have the same. Never empty. */
  readonly serviceInstanceName: string;
  /** The ids that the service announces; '' when it does not. */
  readonly productId: string;
  readonly deviceId: string;
  /** All items of the TXT record, `productid`, `deviceid` and `fn` (the friendly name) among them. Text of strangers. */
  readonly txtItems: Readonly<Record<string, string>>;
  /** One at least. Of REMOVE where it was. */
  readonly addresses: readonly MdnsAddress[];
}

/** Told of results. What it throws is logged. */
export interface MdnsResultReceiver {
  onResultReady(result: MdnsResult): void;
}

/** The listeners of a client, each for the service type and for any number of subtypes. */
export class MdnsListeners {
  readonly #browser: MdnsBrowser;
  readonly #ends = new Map<MdnsResultReceiver, Map<string, () => void>>();

  constructor(browser: MdnsBrowser) {
    this.#browser = browser;
  }

  add(receiver: MdnsResultReceiver, subtype: string | null): void {
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

/** Scans for services while it is started. Made by `SvcClient.createMdnsScanner`. */
export class MdnsScanner {
  readonly #browser: MdnsBrowser;
  readonly #subtype: string | null;
  /** With what ends its listening, null while the scanner is not started. */
  readonly #receivers = new Map<MdnsResultReceiver, (() => void) | null>();
  #started = false;

  /** For `SvcClient.createMdnsScanner`. */
  constructor(browser: MdnsBrowser, subtype: string | null) {
    this.#browser = browser;
    this.#subtype = subtype;
  }

  /** Begins to scan: what is found is given to all receivers. Does nothing when it is started. @throws LocalError STOPPED when the client is stopped */
  start(): void {
    if (this.isStarted()) return;
    this.#browser.check(this.#subtype);
    this.#started = true;
    for (const receiver of this.#receivers.keys()) this.#receivers.set(receiver, this.#listen(receiver));
  }

  /** Ends the scan; it can be started again, and tells then what there is as ADD. Does nothing when it is not started. */
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

  /** Gives results to the receiver, those that are known as ADD. A receiver counts once. */
  addMdnsResultReceiver(receiver: MdnsResultReceiver): void {
    if (!this.#receivers.has(receiver)) this.#receivers.set(receiver, this.isStarted() ? this.#listen(receiver) : null);
  }

  /** The receiver is told nothing more. Harmless for one that was not added. */
  removeMdnsResultReceiver(receiver: MdnsResultReceiver): void {
    this.#receivers.get(receiver)?.();
    this.#receivers.delete(receiver);
  }

  #listen(receiver: MdnsResultReceiver): () => void {
    return listen(this.#browser, this.#subtype, receiver);
  }
}

function listen(browser: MdnsBrowser, subtype: string | null, receiver: MdnsResultReceiver): () => void {
  return browser.browse(subtype, (change) => receiver.onResultReady(resultOf(change)));
}

function resultOf({ action, service }: ServiceChange): MdnsResult {
  return { action: MdnsAction[action], ...contentsOf(service) };
}

function contentsOf({ name, txt, endpoints }: DiscoveredService): Omit<MdnsResult, 'action'> {
  const items = txt ?? [];
  return { serviceInstanceName: name, ...idsOf(items), txtItems: Object.fromEntries(txtEntries(items)), addresses: endpoints };
}
