/**
 * The latest start of a base station: where devices reach it and how they identify it. `station.json` in its data
 * directory, for `svc admin device invite`.
 *
 *     {"Version": 1, "Fingerprint": "…", "Port": 4433, "Host": "192.0.2.1",
 *      "Url": "https://station.example:4433", "TlsProves": true}
 */
import { join } from 'node:path';
import { readJson, replaceJson } from '../../platform/node/index.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { isFingerprint } from '../../protocol/identity/index.ts';

/** The remembered settings. */
export interface LastStart {
  /** Full hex fingerprint of the base station's key. */
  readonly fingerprint: string;
  /** UDP and TCP port. */
  readonly port: number;
  /** Numeric address on which it listens; null: all. */
  readonly host: string | null;
  /** `https://host[:port]` where devices reach it, according to its operator; null: not stated. */
  readonly url: string | null;
  /**
   * Whether its certificate proves the host of `url` to a device that trusts the roots of Node; the device then needs
   * no fingerprint.
   */
  readonly tlsProves: boolean;
}

/** Returns undefined before the first start. @throws LocalError PARSE, FAILED with one line */
export async function readLastStart(directory: string): Promise<LastStart | undefined> {
  const path = fileIn(directory);
  const value = (await readJson(path)) as Record<string, unknown> | null | undefined;
  if (value === undefined) return undefined;
  const { Fingerprint: fingerprint, Port: port, Host: host = null, Url: url = null, TlsProves: tlsProves = false } = value ?? {};
  const isWhole = typeof fingerprint === 'string' && isFingerprint(fingerprint) && Number.isInteger(port) && typeof tlsProves === 'boolean';
  if (!isWhole || !isTextOrNull(host) || !isTextOrNull(url))
    throw new LocalError('PARSE', `${path} is damaged: move it away and start the base station again`);
  return { fingerprint, port: port as number, host, url, tlsProves };
}

/** Writes only if something has changed. @throws LocalError FAILED with one line */
export async function rememberStart(directory: string, start: LastStart): Promise<void> {
  const document = {
    Version: 1,
    Fingerprint: start.fingerprint,
    Port: start.port,
    Host: start.host ?? undefined,
    Url: start.url ?? undefined,
    TlsProves: start.tlsProves,
  };
  const before = await readLastStart(directory).catch(() => undefined);
  if (JSON.stringify(before) !== JSON.stringify(start)) await replaceJson(fileIn(directory), document);
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string';
}

function fileIn(directory: string): string {
  return join(directory, 'station.json');
}
