/**
 * The files of the audit log, and its only IO: `audit-key.pem` in the device's directory, and the segments in the
 * subdirectory `audit`, `<Seq of the first entry, 12 digits>.jsonl`, with a line per entry.
 *
 * A segment only grows. When `append` resolves, its bytes are on disk; when it fails, the file is cut back to its old
 * size. Only one process may have a log open: the size reveals a write by another process, and the entry is refused.
 */
import { type FileHandle, open, readdir, rm, stat, truncate } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { createFile, fileError, makeDirectory, prepareDirectory, readFileIfPresent, syncDirectory } from '../../platform/node/files.ts';
import { check, checkOptions, type Kind, nonEmptyText, options as optionsOf, text, texts, whole } from '../../protocol/arguments.ts';
import { LocalError, SvcError } from '../../protocol/errors/index.ts';
import { type AuditFile, entriesOf } from './chain.ts';
import type { AuditEntry, AuditSigner } from './entry.ts';
import { auditHash, auditSigner, auditVerifier, createAuditKey } from './signing.ts';
import { type AuditVerdict, type VerifyOptions, verifyEntries } from './verify.ts';

export const AUDIT_KEY_FILE = 'audit-key.pem';
export const AUDIT_DIRECTORY = 'audit';

const SEGMENT = /^(\d{12})\.jsonl$/;
/** Bytes. The log never writes a larger segment, and a larger file is not read into memory. */
const LARGEST_SEGMENT = 64 * 1024 * 1024;
const READ_ATTEMPTS = 3;

const TARGET: Kind = [(value) => nonEmptyText[0](value) || texts[0](value), 'a directory, or an array of files'];
const VERIFY: Record<keyof VerifyOptions, Kind> = {
  publicKey: text,
  expect: optionsOf('an entry', { seq: whole(0), hash: text }, ['seq', 'hash']),
};

interface Segment {
  readonly first: number;
  readonly path: string;
  size: number;
}

/**
 * Opens the audit key of a device's directory. Creates it when there is neither key nor log.
 * @throws LocalError PARSE for a damaged key, NOT_FOUND for a log without key, FAILED
 */
export async function openAuditKey(directory: string): Promise<AuditSigner> {
  await prepareDirectory(directory);
  const existing = await readAuditKey(directory);
  if (existing !== undefined) return existing;
  if ((await segmentNames(join(directory, AUDIT_DIRECTORY))).length > 0) {
    const missing = `${join(directory, AUDIT_KEY_FILE)} is missing, and the audit log cannot continue without it`;
    throw new LocalError('NOT_FOUND', `${missing}: restore it, or move the directory "${AUDIT_DIRECTORY}" away to begin a new log`);
  }
  await createFile(join(directory, AUDIT_KEY_FILE), createAuditKey());
  return openAuditKey(directory);
}

/** Returns undefined when there is none. @throws LocalError PARSE, FAILED */
export async function readAuditKey(directory: string): Promise<AuditSigner | undefined> {
  check('the directory', directory, nonEmptyText);
  const path = join(directory, AUDIT_KEY_FILE);
  const bytes = await readFileIfPresent(path);
  if (bytes === undefined) return undefined;
  try {
    return auditSigner(new TextDecoder().decode(bytes));
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    throw new LocalError(error.code, `${path}: ${error.message}: restore it, or move both away to start again`, { cause: error });
  }
}

/**
 * Finds the first entry of a log that is not as the device wrote it. May run beside the device.
 * @param target directory of the device, or of the segments; or the files of the segments
 * @throws LocalError NOT_FOUND when there is no log, FAILED when it cannot be read. Never for its content
 */
export async function verifyAuditLog(target: string | readonly string[], options: VerifyOptions = {}): Promise<AuditVerdict> {
  checkOptions('a verification', options, VERIFY);
  let files = await readAuditFiles(target);
  for (let attempt = 1; ; attempt++) {
    const verdict = verifyEntries(files, { ...auditHash, ...auditVerifier() }, options);
    if (verdict.ok || attempt === READ_ATTEMPTS) return verdict;
    // The device may have been writing at that moment.
    const again = await readAuditFiles(target);
    if (totalOf(again) === totalOf(files)) return verdict;
    files = again;
  }
}

/** Returns the entries that can be parsed, in file order, unverified. @throws LocalError as verifyAuditLog */
export async function readAuditEntries(target: string | readonly string[]): Promise<AuditEntry[]> {
  return (await readAuditFiles(target)).flatMap(entriesOf);
}

/** Reads the segments in order. @throws LocalError as verifyAuditLog */
async function readAuditFiles(target: string | readonly string[]): Promise<AuditFile[]> {
  check('the audit log', target, TARGET);
  const paths = typeof target === 'string' ? await segmentPaths(target) : [...target];
  if (paths.length === 0) throw new LocalError('NOT_FOUND', `there is no audit log in ${target}: a device creates one at its first start`);
  const files: AuditFile[] = [];
  for (const path of paths) {
    const bytes = await readSegment(path);
    if (bytes !== undefined) files.push({ name: basename(path), bytes });
    else if (typeof target !== 'string') throw new LocalError('NOT_FOUND', `there is no file ${path}`);
  }
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The log files that a running device writes. */
export class AuditStore {
  readonly #directory: string;
  readonly #segments: Segment[];
  #file: FileHandle | null = null;
  /** Set when a write failed: there may be bytes after the end. */
  #dirty = false;

  private constructor(directory: string, segments: Segment[]) {
    this.#directory = directory;
    this.#segments = segments;
  }

  /** Opens the segments below a device's directory, and creates their directory. @throws LocalError FAILED */
  static async open(parent: string): Promise<AuditStore> {
    const directory = join(parent, AUDIT_DIRECTORY);
    await makeDirectory(directory);
    const segments: Segment[] = [];
    for (const name of await segmentNames(directory)) {
      const path = join(directory, name);
      segments.push({ first: Number.parseInt(name, 10), path, size: (await stat(path)).size });
    }
    return new AuditStore(directory, segments);
  }

  /** The segments, in the order of their entries. */
  get segments(): readonly Readonly<Segment>[] {
    return this.#segments;
  }

  /** Bytes of the newest segment, 0 without one. */
  get size(): number {
    return this.#segments.at(-1)?.size ?? 0;
  }

  /** @throws LocalError FAILED */
  async read({ path }: Readonly<Segment>): Promise<Uint8Array> {
    return (await readSegment(path)) ?? new Uint8Array(0);
  }

  /** Cuts the newest segment to `size` bytes; removes a segment that becomes empty. */
  async cut(size: number): Promise<void> {
    const newest = this.#newest();
    await this.#tried(newest.path, async () => {
      if (size > 0) return truncate(newest.path, size);
      await rm(newest.path);
      await syncDirectory(this.#directory);
    });
    newest.size = size;
    if (size === 0) this.#segments.pop();
  }

  /** Appends to the newest segment. @throws LocalError FAILED; INVALID_STATE when another process has written to it */
  async append(bytes: Uint8Array): Promise<void> {
    const newest = this.#newest();
    await this.#tried(newest.path, async () => {
      this.#file ??= await open(newest.path, 'r+');
      const { size, nlink } = await this.#file.stat();
      if (this.#dirty) await this.#file.truncate(newest.size);
      else if (size !== newest.size || nlink === 0)
        throw new LocalError('INVALID_STATE', `${newest.path} was changed by another process while the device was running`);
      this.#dirty = true;
      await writeAll(this.#file, bytes, newest.size);
      await this.#file.datasync();
      this.#dirty = false;
    });
    newest.size += bytes.length;
  }

  /** Begins a segment with its first entry. @throws LocalError FAILED */
  async begin(first: number, bytes: Uint8Array): Promise<void> {
    const path = join(this.#directory, `${String(first).padStart(12, '0')}.jsonl`);
    await this.#tried(path, async () => {
      const file = await open(path, 'wx', 0o600);
      try {
        await writeAll(file, bytes, 0);
        await file.sync();
        await syncDirectory(this.#directory);
      } catch (error) {
        await file.close();
        await rm(path, { force: true });
        throw error;
      }
      await this.#file?.close();
      this.#file = file;
    });
    this.#dirty = false;
    this.#segments.push({ first, path, size: bytes.length });
  }

  /** Removes the segments that begin before `first`, oldest first. @throws LocalError FAILED */
  async removeBefore(first: number): Promise<void> {
    for (let oldest = this.#segments[0]; oldest !== undefined && oldest.first < first; oldest = this.#segments[0]) {
      const { path } = oldest;
      await this.#tried(path, () => rm(path, { force: true }));
      this.#segments.shift();
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = null;
  }

  #newest(): Segment {
    const newest = this.#segments.at(-1);
    if (newest === undefined) throw new LocalError('INVALID_STATE', 'the audit log has no segment');
    return newest;
  }

  async #tried(path: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      throw error instanceof SvcError ? error : fileError('cannot write', path, error);
    }
  }
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
  }
}

/** Segments of a device's directory, or of the directory of segments itself. */
async function segmentPaths(directory: string): Promise<string[]> {
  for (const each of [join(directory, AUDIT_DIRECTORY), directory]) {
    const names = await segmentNames(each);
    if (names.length > 0) return names.map((name) => join(each, name));
  }
  return [];
}

async function segmentNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => SEGMENT.test(name)).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw fileError('cannot read', directory, error);
  }
}

async function readSegment(path: string): Promise<Uint8Array | undefined> {
  const found = await stat(path).catch(() => null);
  if (found?.isFile() === false) throw new LocalError('FAILED', `${path} is not a file`);
  if (found !== null && found.size > LARGEST_SEGMENT) throw new LocalError('FAILED', `${path} is too large for a segment of an audit log`);
  return readFileIfPresent(path, { given: true });
}

function totalOf(files: readonly AuditFile[]): string {
  return files.map(({ name, bytes }) => `${name}:${bytes.length}`).join();
}
