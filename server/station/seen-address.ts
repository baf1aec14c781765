/**
 * Reports the address at which the base station sees an end now: a NAT may have given its channel another address since
 * the end attached or connected.
 */
import { type CoapReply, type RoutedRequest, Status, textReply } from '../../protocol/coap/index.ts';
import { CONTENT_FORMAT_CBOR, encodeSeenAddress } from '../../protocol/control/index.ts';
import type { Session } from '../../runtime/session/index.ts';

/** Serves `GET /device/address` and `GET /client/address`: the address of the channel that was validated last. */
export function seenAddress({ context: { validatedPath } }: RoutedRequest<Session>): CoapReply {
  const { kind, address, port } = validatedPath;
  // The TCP port of a WebSocket is not a port of the NAT's UDP mappings.
  if (kind !== 'udp') return textReply(Status.NOT_FOUND, 'No address');
  return { status: Status.CONTENT, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeSeenAddress({ address, port }) };
}
