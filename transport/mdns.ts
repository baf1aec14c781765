/** Multicast DNS as a host gives it: the links, and messages on them. Types only. */
import type { DnsMessage, MdnsSource } from '../protocol/discovery/index.ts';

/** Multicast DNS of a host. */
export interface MdnsNetwork {
  /** The links there are now: interfaces come and go. */
  links(): readonly MdnsLink[];
  /** Takes part on a link. Never throws: `handlers.failed` tells. */
  open(link: MdnsLink, handlers: MdnsHandlers): MdnsSocket;
}

/** One interface and one family of addresses: multicast is of either IPv4 or IPv6. */
export interface MdnsLink {
  /** Its own name as long as it is there: of the interface and the family. */
  readonly name: string;
  /** All numeric addresses of the interface, of both families, those of the link's own family first, without zone. */
  readonly addresses: readonly string[];
  /** What link-local IPv6 addresses need behind a `%` to be used on this link (RFC 4007 §11); absent where they need nothing. */
  readonly zone?: string;
}

export interface MdnsHandlers {
  /** A message from this link. @param own from an address of this host. Must not throw. */
  received: (message: DnsMessage, from: MdnsSource, own: boolean) => void;
  /** The link cannot be used; the socket is closed. Told once at most, and not from within `open`. */
  failed: (error: Error) => void;
}

/** A place on a link. */
export interface MdnsSocket {
  /** To everybody on the link, or to one. Never throws: UDP promises nothing. */
  send(message: DnsMessage, to: MdnsSource | null): void;
  /** Resolves when what was sent has left. Nothing arrives any more. */
  close(): Promise<void>;
}
