/**
 * The only globals that protocol/ may use. Everything else a platform has (time, randomness, sockets, timers) is an
 * argument.
 */

declare class TextEncoder {
  encode(text?: string): Uint8Array<ArrayBuffer>;
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: Uint8Array): string;
}
