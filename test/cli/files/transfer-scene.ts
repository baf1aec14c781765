/** A device with files, and a client with a source and a target, on a real disk and with streams in memory. */
import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { installFiles } from '../../../cli/device-app/files.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { MemoryDevice } from './memory-streams.ts';

export const SIZE = 300_000;
/** Fingerprint of another client than the usual one. */
export const OTHER = 'b'.repeat(64);
export const { clock } = nodeEnvironment();

export class TransferScene {
  readonly folder: string;
  /** The files of the device. */
  readonly directory: string;
  readonly source: string;
  readonly target: string;
  readonly memory = new MemoryDevice();

  static async open(): Promise<TransferScene> {
    const scene = new TransferScene(temporaryDirectory());
    await mkdir(scene.directory);
    await installFiles(scene.memory.device, scene.directory, { clock });
    return scene;
  }

  private constructor(folder: string) {
    this.folder = folder;
    this.directory = join(folder, 'device');
    this.source = join(folder, 'source');
    this.target = join(folder, 'target');
  }

  /** Content of the file that the device received. */
  stored(): Promise<Buffer> {
    return readFile(join(this.directory, 'file'));
  }
}

/** Content that is the same for a seed; no two parts of it are equal. */
export function content(seed: number, size = SIZE): Buffer {
  const words = new Uint32Array(Math.ceil(size / 4));
  for (let at = 0, state = seed | 1; at < words.length; at++) words[at] = state = Math.imul(state, 0x915f77f5) + 0x3039;
  return Buffer.from(words.buffer, 0, size);
}

/** Returns the message of the error that `work` rejects with; `done` otherwise. */
export const message = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: Error) => error.message,
  );

/** Size of a file; 0: there is none. */
export const sizeOf = (path: string): Promise<number> =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );
