/**
 * The certificate of HTTP over TLS: its PEM files, reloaded when they change, so that a renewal needs no restart.
 *
 * 1. `open` reads the pair and refuses to start with an unusable one.
 * 2. Every 10 s both files are checked (`stat`, which follows links): another inode, size or time is a change, so a
 *    rename or a changed link counts, too. `reload`, at SIGHUP, reads them at once.
 * 3. The server gets a usable pair: new connections use it, open ones stay.
 * 4. An unusable pair (half written, key of another certificate) is logged once for each change and ignored; the
 *    previous one stays in use.
 * 5. From 14 days before the certificate expires a warning is logged once a day, after it an error.
 *
 * It does not check chain or names: clients decide what they trust.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Cancel, Clock, Log } from '../../platform/environment.ts';
import { fileError } from '../../platform/node/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';

export interface CertificateFiles {
  /** PEM of the certificate and its chain. */
  readonly certFile: string;
  readonly keyFile: string;
}

/** PEM texts. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

export interface CertificatesConfig {
  readonly clock: Clock;
  readonly log: Log;
  readonly files: CertificateFiles;
}

const DAY = 86_400_000;
/** ms between two checks of the files. */
const POLL = 10_000;
/** ms before the expiry from which the log warns. */
const WARN_BEFORE = 14 * DAY;

/** The certificate pair of a server, kept up to date. */
export class Certificates {
  readonly #config: CertificatesConfig;
  #pair: Pair;
  #validTo: number;
  /** State of the files when they were last read. */
  #seen: string;
  #server: { setSecureContext(pair: Pair): void } | null = null;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #cancel: Cancel = () => {};
  #reading: Promise<void> = Promise.resolve();
  #closed = false;

  /**
   * @throws LocalError FAILED when a file cannot be read; INVALID_ARGUMENT unless they are a certificate and its key
   */
  static async open(config: CertificatesConfig): Promise<Certificates> {
    const seen = await looks(config.files);
    const pair = await readPair(config.files);
    return new Certificates(config, pair, seen);
  }

  private constructor(config: CertificatesConfig, pair: Pair, seen: string) {
    this.#config = config;
    this.#pair = pair;
    this.#seen = seen;
    this.#validTo = check(pair);
  }

  get pair(): Pair {
    return this.#pair;
  }

  /** Keeps the server's pair up to date from now on. */
  follow(server: { setSecureContext(pair: Pair): void }): void {
    this.#server = server;
    this.#logExpiry();
    this.#poll();
  }

  /** Reads the files now, changed or not. Resolves when the server has the pair, or the reason has been logged. */
  reload(): Promise<void> {
    return this.#read(true);
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  #poll(): void {
    this.#cancel = this.#config.clock.schedule(POLL, () => {
      void this.#read(false).then(() => {
        if (this.#closed) return;
        this.#logExpiry();
        this.#poll();
      });
    });
  }

  /** Reads the files; reads run one after the other. */
  #read(always: boolean): Promise<void> {
    this.#reading = this.#reading.then(() => this.#readNow(always));
    return this.#reading;
  }

  async #readNow(always: boolean): Promise<void> {
    const { files, log } = this.#config;
    const seen = await looks(files);
    if (this.#closed || (seen === this.#seen && !always)) return;
    this.#seen = seen;
    try {
      const pair = await readPair(files);
      this.#validTo = check(pair);
      this.#pair = pair;
      this.#server?.setSecureContext(pair);
      this.#loggedAt = Number.NEGATIVE_INFINITY;
      log.info('the TLS certificate was reloaded', { expires: new Date(this.#validTo).toISOString() });
    } catch (error) {
      log.error('the changed TLS certificate is unusable, the previous one stays in use', { error: (error as Error).message });
    }
  }

  #logExpiry(): void {
    const { clock, log, files } = this.#config;
    const left = this.#validTo - clock.wallTime();
    if (left > WARN_BEFORE || clock.now() - this.#loggedAt < DAY) return;
    this.#loggedAt = clock.now();
    const fields = { expires: new Date(this.#validTo).toISOString(), file: files.certFile };
    if (left > 0) log.warn('the TLS certificate expires soon: renew it', fields);
    else log.error('the TLS certificate has expired: devices and clients without a pin of this base station cannot connect', fields);
  }
}

/** Returns a text that differs between states of the files. A missing file is a state, too. */
async function looks({ certFile, keyFile }: CertificateFiles): Promise<string> {
  const each = await Promise.all([certFile, keyFile].map((file) => stat(file, { bigint: true }).catch(() => null)));
  return each.map((file) => (file === null ? 'none' : `${file.dev} ${file.ino} ${file.size} ${file.mtimeNs} ${file.ctimeNs}`)).join('\n');
}

async function readPair({ certFile, keyFile }: CertificateFiles): Promise<Pair> {
  return { cert: await readPem(certFile, 'certificate'), key: await readPem(keyFile, 'private key') };
}

const ENCRYPTED = 'the private key is encrypted: write it without a passphrase';

/** @returns Unix ms until which the certificate is valid @throws LocalError INVALID_ARGUMENT */
function check(pair: Pair): number {
  try {
    createSecureContext(pair);
    const certificate = new X509Certificate(pair.cert);
    // OpenSSL has a slot for each type of key, and does not compare keys of different types.
    if (!certificate.checkPrivateKey(createPrivateKey(pair.key))) throw new Error(NOT_ITS_KEY);
    return Date.parse(certificate.validTo);
  } catch (error) {
    throw new LocalError('INVALID_ARGUMENT', `the TLS certificate or key cannot be used: ${faultOf(error)}`, { cause: error });
  }
}

const NOT_ITS_KEY = 'the private key is not that of the certificate';

/** Messages by OpenSSL's codes; for others OpenSSL's own message is used. */
const FAULTS: Readonly<Record<string, string>> = {
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: NOT_ITS_KEY,
  ERR_OSSL_X509_KEY_TYPE_MISMATCH: NOT_ITS_KEY,
  ERR_OSSL_BAD_DECRYPT: ENCRYPTED,
  ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED: ENCRYPTED,
  ERR_OSSL_PEM_BAD_END_LINE: 'one of the files is not whole',
  ERR_OSSL_PEM_NO_START_LINE: 'one of the files is not whole',
};

function faultOf(error: unknown): string {
  const { code = '', message } = error as Error & { code?: string };
  return FAULTS[code] ?? message;
}

const PEM = { certificate: /-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----/, 'private key': /-----BEGIN ([A-Z]+ )*PRIVATE KEY-----/ };

async function readPem(file: string, kind: keyof typeof PEM): Promise<string> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw fileError('cannot read', file, error);
  }
  if (!PEM[kind].test(text)) throw new LocalError('INVALID_ARGUMENT', `${file} is not a PEM ${kind}`);
  return text;
}
