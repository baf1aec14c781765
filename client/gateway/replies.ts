/** The gateway's answers to a CoAP tool: the device's response unchanged, or the reason for its absence. */
import { type CoapReply, Status, textReply } from '../../protocol/coap/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Answer } from '../requests.ts';

/** The device's response. @param accept the only content format accepted (RFC 7252 §5.10.4) */
export function responseReply({ status, format, bytes, maxAge, ok }: Answer, accept: number | undefined): CoapReply {
  const unwanted = accept !== undefined && format !== undefined && format !== accept && ok;
  if (unwanted) return textReply(Status.NOT_ACCEPTABLE, `The content format is ${format}`);
  return { status, payload: bytes, ...(format !== undefined && { contentFormat: format }), ...(maxAge !== undefined && { maxAge }) };
}

/** The answer when a request that went to the device gets no response. The device may or may not have acted on it. */
export function errorReply({ code }: SvcError): CoapReply {
  if (code === 'TIMEOUT') return textReply(Status.GATEWAY_TIMEOUT, 'The device did not answer in time');
  if (code === 'BAD_RESPONSE') return textReply(Status.BAD_GATEWAY, "The device's answer cannot be understood");
  if (code === 'INVALID_ARGUMENT') return textReply(Status.BAD_REQUEST, 'The device cannot be sent this request');
  return textReply(Status.GATEWAY_TIMEOUT, 'The connection to the device was lost');
}

/** The answer when the request did not reach the device. @param retryIn seconds until a retry may succeed */
export function notConnectedReply(retryIn: number): CoapReply {
  return { ...textReply(Status.SERVICE_UNAVAILABLE, 'There is no connection to the device'), maxAge: retryIn };
}

/** The answer when the gateway is at its limit of requests. */
export function busyReply(): CoapReply {
  return { ...textReply(Status.SERVICE_UNAVAILABLE, 'Out of resources'), maxAge: 1 };
}
