/** Errors with fields of their own, and the conversion of thrown values to errors of the catalogue. */
import { LocalError, SvcError } from '../../bindings/error.ts';
import type { ErrorCode } from './catalogue.ts';

/** Result of each way: `NONE` when it was disabled, `OK` when it would have worked. */
export interface ChannelErrors {
  readonly local: ErrorCode;
  readonly remote: ErrorCode;
  readonly direct: ErrorCode;
}

/** `NO_CHANNELS`: neither the local network, nor the base station, nor a direct candidate led to the device. */
export class NoChannelsError extends SvcError {
  override name = 'NoChannelsError';
  readonly localChannelErrorCode: ErrorCode;
  readonly remoteChannelErrorCode: ErrorCode;
  readonly directCandidatesChannelErrorCode: ErrorCode;

  constructor(channels: ChannelErrors, options?: ErrorOptions) {
    super('NO_CHANNELS', `no way to the device (local ${channels.local}, remote ${channels.remote}, direct ${channels.direct})`, options);
    this.localChannelErrorCode = channels.local;
    this.remoteChannelErrorCode = channels.remote;
    this.directCandidatesChannelErrorCode = channels.direct;
  }
}

/** Returns the error itself if it is an SvcError; wraps anything else in UNKNOWN with the original as its cause. */
export function asSvcError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new LocalError('UNKNOWN', error instanceof Error ? error.message : String(error), { cause: error });
}

/** PORT_IN_USE. */
export class PortInUseError extends LocalError {
  override name = 'PortInUseError';
  readonly transport: 'UDP' | 'TCP';
  readonly port: number;

  constructor(transport: 'UDP' | 'TCP', port: number, options?: ErrorOptions) {
    super('PORT_IN_USE', `${transport} port ${port} is in use: stop what uses it, or choose another one (0 takes a free one)`, options);
    this.transport = transport;
    this.port = port;
  }
}
