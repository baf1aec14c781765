/** Multicast DNS as a host provides it: the links, and messages on them. Types only. */
import type { DnsMessage, MdnsSource } from '../protocol/discovery/index.ts';

/** Multicast DNS of a host. */
export interface MdnsNetwork {
  /** Returns the current links: interfaces come and go. */
  links(): readonly MdnsLink[];
  /** Joins a link. Never throws: `handlers.failed` reports errors. */
  open(link: MdnsLink, handlers: MdnsHandlers): MdnsSocket;
}

/** One interface and one family of addresses: multicast is of either IPv4 or IPv6. */
export interface MdnsLink {
  /** Name of the interface and the family, constant while the link exists. */
  readonly name: string;
  /** All numeric addresses of the interface, of both families, those of the link's own family first, without zone. */
  readonly addresses: readonly string[];
  /**
   * The zone that link-local IPv6 addresses need behind a `%` on this link (RFC 4007 §11); absent where they need none.
   */
  readonly zone?: string;
}

export interface MdnsHandlers {
  /** Receives a message from this link. Must not throw. @param own from an address of this host */
  received: (message: DnsMessage, from: MdnsSource, own: boolean) => void;
  /** The link cannot be used; the socket is closed. Called at most once, and not from within `open`. */
  failed: (error: Error) => void;
}

/** An open socket on a link. */
export interface MdnsSocket {
  /** Sends to all hosts on the link, or to one. Never throws: UDP promises nothing. */
  send(message: DnsMessage, to: MdnsSource | null): void;
  /** Resolves when what was sent has left. No message is received any more. */
  close(): Promise<void>;
}
