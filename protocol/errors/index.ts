/** Errors of the project: the three classes, the catalogue of codes, and the numbers on the wire. */
export { isCoreFailure, LocalError, RemoteError, SvcError } from '../../bindings/error.ts';
export { type CatalogueEntry, catalogue, type ErrorCode, errorMeaning, isErrorCode, type Raiser } from './catalogue.ts';
export { asSvcError, type ChannelErrors, NoChannelsError, PortInUseError } from './classes.ts';
export { CloseCode, closeCodeName, closeError, StreamCode, streamCodeName, streamError, TransportCode } from './codes.ts';
export { StationCode, type StationCodeMeaning, stationCodeMeaning } from './station-codes.ts';
