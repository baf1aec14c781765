/** The error of a connect that found no way to the device, with the result of each way that was tried. */
import { SvcError } from '../../bindings/error.ts';
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
