/**
 * CoAP inside our channels: messages in the form of RFC 8323 over WebSockets, exchanges in both directions, and a
 * router.
 */

export { printable } from '../printable.ts';
export { BodyRoom } from './body.ts';
export {
  type CoapMethod,
  ContentFormat,
  codeKind,
  codeOfStatus,
  formatStatus,
  MethodCode,
  methodOfCode,
  Status,
  statusOfCode,
} from './codes.ts';
export { DEFAULT_TIMEOUT, Exchanges, type ExchangesEvent, type ExchangesOptions } from './exchanges.ts';
export { attributeOf, CORE_PATH, type CoreAttribute, type CoreLink, decodeLinks, encodeLinks, filterLinks } from './link-format.ts';
export { type CoapMessage, decodeMessage, encodeMessage, MAX_MESSAGE } from './message.ts';
export { type CoapOption, type OptionDefinition, OptionNumber, optionTable } from './options.ts';
export { checkQuery, formatPath, MAX_PATH, parsePath } from './path.ts';
export type { CoapRequest, IncomingRequest } from './request.ts';
export { type CoapReply, type CoapResponse, diagnosticText, textReply } from './response.ts';
export { type Handler, type HandlerOptions, type RoutedRequest, Router, type RouterOptions } from './router.ts';
