/**
 * The two protocols behind one interface: which request asks for a mapping, and the meaning of its answer. Keeps only
 * the state that the next request needs.
 *
 * PCP has one request. NAT-PMP has two, the external address and the mapping; the address comes first, so that a
 * granted mapping is complete.
 */
import { decodeNatPmp, encodeNatPmpAddress, encodeNatPmpMap, isNatPmp, natPmpResultName } from './nat-pmp.ts';
import { decodePcpMap, encodePcpMap, isPcpRefusal, PcpResult, pcpResultName } from './pcp.ts';

/** A mapping as the gateway states it. */
export interface GrantedMapping {
  /** 4 or 16 bytes. */
  readonly address: Uint8Array;
  readonly port: number;
  /** s; 0 only for a deleted one. */
  readonly lifetime: number;
}

/**
 * - granted: the mapping is in force
 * - next: another request must be sent first
 * - unsupported: the gateway does not support this protocol
 * - refused: it does, but does not map. `retryAfter` s, 0 where it states none
 */
export type Answer =
  | { readonly kind: 'granted'; readonly granted: GrantedMapping; readonly epoch: number }
  | { readonly kind: 'next'; readonly epoch: number }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'refused'; readonly reason: string; readonly retryAfter: number; readonly epoch: number };

export interface MappingRequests {
  readonly protocol: 'PCP' | 'NAT-PMP';
  /**
   * Returns the next request, the same until it is answered.
   * @param lifetime s, 0 to delete;
   * @param last the previous mapping, requested again
   */
  request(lifetime: number, last: GrantedMapping | null): Uint8Array;
  /** Returns null for anything but an answer to the request. */
  answer(datagram: Uint8Array): Answer | null;
  /** Starts again with the first request. */
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

  request(lifetime: number, last: GrantedMapping | null): Uint8Array {
    // A deletion request suggests nothing (RFC 6887 §15.1).
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

  request(lifetime: number, last: GrantedMapping | null): Uint8Array {
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
    // No mapping was requested yet; a deletion does not query the address.
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
