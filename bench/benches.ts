/** All benches by name: what each measures, and how to run it. A bench is loaded when it runs. */
import type { Report } from './report.ts';

export type Progress = (step: string) => void;

export interface Bench {
  readonly about: string;
  /** The options that it has. */
  readonly takes: readonly (keyof Options)[];
  readonly run: (progress: Progress, options: Options) => Promise<Report>;
}

export interface Options {
  /** Of `--peers`. */
  readonly peers?: string;
  /** Of `--seeds` and `--foreign`. */
  readonly seeds?: number;
  readonly foreign?: number;
  /** Of `--node`. */
  readonly node?: string;
  /** Of `--against`. */
  readonly against?: string;
  /** Of `--quick`. */
  readonly quick?: boolean;
}

export const benches: Readonly<Record<string, Bench>> = {
  aead: {
    about: 'ChaCha20-Poly1305 beside node:crypto, @noble/ciphers and @chainsafe/as-chacha20poly1305',
    takes: [],
    run: async (progress) => (await import('./aead.ts')).run(progress),
  },
  browser: {
    about: 'the same for 1,200 bytes in Chromium, in a page and in a worker',
    takes: [],
    run: async (progress) => (await import('./browser.ts')).run(progress),
  },
  stream: {
    about: 'a bulk stream, direct and through the base station, beside bare datagrams and the peers',
    takes: ['peers'],
    run: async (progress, options) => (await import('./stream.ts')).run(progress, options),
  },
  echo: {
    about: 'set-up to first echo, and round trips of 64 bytes, beside the peers',
    takes: ['peers', 'quick'],
    run: async (progress, options) => (await import('./echo.ts')).run(progress, options),
  },
  connect: {
    about: 'processor time of a connect and an attach at each party, beside the Diffie-Hellman work of a handshake',
    takes: ['against', 'quick'],
    run: async (progress, options) => (await import('./connect.ts')).run(progress, options),
  },
  coap: {
    about: 'round trips of a CoAP request beside the coap package, and under a bulk upload',
    takes: ['quick'],
    run: async (progress, options) => (await import('./coap.ts')).run(progress, options),
  },
  memory: {
    about: 'memory of an idle connection and of an idle attached device',
    takes: ['quick'],
    run: async (progress, options) => (await import('./memory.ts')).run(progress, options),
  },
  iam: {
    about: 'access control of a device: decision, saved change and memory with many users',
    takes: [],
    run: async (progress) => (await import('./iam.ts')).run(progress),
  },
  paths: {
    about: 'checks by which two ends find a direct path, beside a bare HMAC-SHA-256',
    takes: [],
    run: async (progress) => (await import('./paths.ts')).run(progress),
  },
  password: {
    about: 'a password authentication over an open direct connection, cold and warm',
    takes: [],
    run: async (progress) => (await import('./password.ts')).run(progress),
  },
  trust: {
    about: "the cost of an issuer's token at the base station, and of the proof by TLS at a client",
    takes: [],
    run: async (progress) => (await import('./trust.ts')).run(progress),
  },
  cli: {
    about: 'processor time of svc --help, --version and a first CoAP answer, beside bare Node',
    takes: ['node', 'quick'],
    run: async (progress, options) => (await import('./cli.ts')).run(progress, options),
  },
  nat: {
    about: 'how often and how fast a relayed connection becomes direct, by the NATs of both ends, in the simulator',
    takes: ['seeds', 'foreign'],
    run: async (progress, options) => (await import('./nat.ts')).run(progress, options),
  },
};
