/**
 * `join.json` in the directory of a device: a join string and its options, from before the join until the device is
 * attached. A device that is killed meanwhile continues with it at its next start. It holds a secret and is readable
 * only by its owner, like the whole directory.
 */
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileError, readJson, replaceJson, syncDirectory } from '../../platform/node/index.ts';
import { areCertificates } from '../../protocol/identity/index.ts';
import { isId } from '../../protocol/records/index.ts';
import { parseServerUrl, parseWebSocketUrl } from '../../runtime/station/index.ts';
import { CommandError } from '../frame/errors.ts';
import { type GivenJoin, parseJoin } from './join-string.ts';

/** Name of the file. */
export const JOIN_FILE = 'join.json';

/** Options of the join. */
export interface JoinChoices {
  readonly deviceId?: string | undefined;
  /** Another address of the same base station. */
  readonly server?: string | undefined;
  /** PEM. */
  readonly rootCerts?: string | undefined;
  readonly serverWebsocket?: string | undefined;
}

export interface PendingJoin extends GivenJoin {
  readonly choices: JoinChoices;
}

interface Document {
  readonly Version: 1;
  readonly JoinString: string;
  readonly DeviceId?: string | undefined;
  readonly ServerUrl?: string | undefined;
  readonly ServerRootCerts?: string | undefined;
  readonly ServerWebSocketUrl?: string | undefined;
}

/** Returns the waiting join; null where there is none. @throws CommandError, LocalError that name the file */
export async function readPendingJoin(path: string): Promise<PendingJoin | null> {
  const document = await readJson(path);
  if (document === undefined) return null;
  if (!isDocument(document)) throw new CommandError(`${path} is damaged: remove it, and give the join string again with --join`);
  const { JoinString, DeviceId: deviceId, ServerUrl: server, ServerRootCerts: rootCerts, ServerWebSocketUrl: serverWebsocket } = document;
  try {
    return { ...parseJoin(JoinString), choices: { deviceId, server, rootCerts, serverWebsocket } };
  } catch {
    throw new CommandError(`${path} is damaged: remove it, and give the join string again with --join`);
  }
}

/** Saves a join; it is on disk when this resolves. @throws LocalError FAILED */
export async function savePendingJoin(path: string, { text, choices }: Omit<PendingJoin, 'join'>): Promise<void> {
  const { deviceId, server, rootCerts, serverWebsocket } = choices;
  const document: Document = {
    Version: 1,
    JoinString: text,
    DeviceId: deviceId,
    ServerUrl: server,
    ServerRootCerts: rootCerts,
    ServerWebSocketUrl: serverWebsocket,
  };
  await replaceJson(path, document);
}

/** Removes the join from disk; does nothing where there is none. @throws LocalError FAILED */
export async function forgetPendingJoin(path: string): Promise<void> {
  try {
    await rm(path);
    await syncDirectory(dirname(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw fileError('cannot remove', path, error);
  }
}

function isDocument(value: unknown): value is Document {
  const { Version, JoinString, DeviceId, ServerUrl, ServerRootCerts, ServerWebSocketUrl } = (value ?? {}) as Partial<Document>;
  const checks: [unknown, (text: string) => boolean][] = [
    [DeviceId, isId],
    [ServerUrl, (text) => parseServerUrl(text) !== null],
    [ServerRootCerts, areCertificates],
    [ServerWebSocketUrl, (text) => parseWebSocketUrl(text) !== null],
  ];
  const sound = checks.every(([text, check]) => text === undefined || (typeof text === 'string' && check(text)));
  return Version === 1 && typeof JoinString === 'string' && sound;
}
