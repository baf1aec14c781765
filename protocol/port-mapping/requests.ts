/**
 * The two protocols behind one face: which request asks for a mapping, and what an answer to it says. No state of its own but what the next request needs.
 *
 * PCP has one request. NAT-PMP has two, the external address and the mapping; the address is asked first, so that a mapping is known whole.
 */
import { decodeNatPmp, encodeNatPmpAddress, encodeNatPmpMap, isNatPmp, natPmpResultName } from './nat-pmp.ts';
import { decodePcpMap, encodePcpMap, isPcpRefusal, PcpResult, pcpResultName } from './pcp.ts';

/** What was mapped, as the gateway states it. */
export interface Granted {
  /** 4 or 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
  /** s, more than 0 unless it was deleted. */
  readonly lifetime: number;
}

/**
 * - granted: the mapping holds
 * - next: another request is to be sent before it does
 * - unsupported: the gateway does not speak this protocol
 * - refused: it does, and does not map. `retryAfter` s, 0 where it does not say
 */
export type Answer =
  | { readonly kind: 'granted'; readonly granted: Granted; readonly epoch: number }
  | { readonly kind: 'next'; readonly epoch: number }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'refused'; readonly reason: string; readonly retryAfter: number; readonly epoch: number };

export interface MappingRequests {
  readonly protocol: 'PCP' | 'NAT-PMP';
  /** The next request, the same until it is answered. @param lifetime s, 0 to delete; @param last what was granted before: asked for again */
  request(lifetime: number, last: Granted | null): Uint8Array;
  /** Null for what is no answer to the request. */
  answer(datagram: Uint8Array): Answer | null;
  /** The next request is the first one. */
  begin(): void;
}

export class PcpRequests implements MappingRequests {
  readonly protocol = 'PCP';
  readonly #client: Uint8Array;
  readonly #nonce: Uint8Array;
  readonly #internalPort: number;

  /** @param client our own address, 4 or 16 bytes */
  constructor(client: Uint8Array, nonce: Uint8Array, internalPort: number) {
    this.#client = client;
    this.#nonce = nonce;
    this.#internalPort = internalPort;
  }

  request(lifetime: number, last: Granted | null): Uint8Array {
    // A request to delete suggests nothing (RFC 6887 §15.1).
    const suggested = lifetime === 0 || last === null ? { address: new Uint8Array(this.#client.length), port: 0 } : last;
    return encodePcpMap({
      lifetime,
      client: this.#client,
      nonce: this.#nonce,
      internalPort: this.#internalPort,
      externalPort: suggested.port,
      external: suggested.address,
    });
  }

  answer(datagram: Uint8Array): Answer | null {
    if (isNatPmp(datagram) || isPcpRefusal(datagram)) return { kind: 'unsupported' };
    const response = decodePcpMap(datagram);
    if (response === null || response.internalPort !== this.#internalPort || !isSame(response.nonce, this.#nonce)) return null;
    const { result, epoch, lifetime } = response;
    if (result === PcpResult.UNSUPP_OPCODE) return { kind: 'unsupported' };
    if (result !== PcpResult.SUCCESS) return { kind: 'refused', reason: pcpResultName(result), retryAfter: lifetime, epoch };
    return { kind: 'granted', granted: { address: response.external, port: response.externalPort, lifetime }, epoch };
  }

  begin(): void {}
}

export class NatPmpRequests implements MappingRequests {
  readonly protocol = 'NAT-PMP';
  readonly #internalPort: number;
  #address: Uint8Array | null = null;

  constructor(internalPort: number) {
    this.#internalPort = internalPort;
  }

  request(lifetime: number, last: Granted | null): Uint8Array {
    if (this.#address === null && lifetime > 0) return encodeNatPmpAddress();
    return encodeNatPmpMap({ lifetime, internalPort: this.#internalPort, externalPort: lifetime === 0 ? 0 : (last?.port ?? 0) });
  }

  answer(datagram: Uint8Array): Answer | null {
    const response = decodeNatPmp(datagram);
    if (response === null) return null;
    const { epoch, result } = response;
    if (response.kind === 'refusal') return { kind: 'refused', reason: natPmpResultName(result), retryAfter: 0, epoch };
    if (response.kind === 'address') {
      if (this.#address !== null) return null;
      this.#address = response.address;
      return { kind: 'next', epoch };
    }
    const { lifetime, externalPort: port } = response;
    // No mapping was asked for yet; a request to delete asks for no address.
    if (response.internalPort !== this.#internalPort || (this.#address === null && lifetime > 0)) return null;
    return { kind: 'granted', granted: { address: this.#address ?? new Uint8Array(4), port, lifetime }, epoch };
  }

  begin(): void {
    this.#address = null;
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
