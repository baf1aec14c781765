/**
 * Takes a lock as the owner of a directory does, and sends itself a signal right after the n-th of its operations on
 * files.
 *
 *   node lock-child.mjs <lock.js> <path> <n> SIGKILL|SIGSTOP
 *
 * Prints `stopped` before a SIGSTOP, and `locked` or `refused: <why>` when it gets through. With n = 0 it holds the
 * lock until it is killed.
 */
import { writeSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { dirname } from 'node:path';

const [lock, path, count, signal] = process.argv.slice(2);
let done = 0;

function watch(target, name) {
  const real = target[name];
  target[name] = async function (...args) {
    try {
      return await real.apply(this, args);
    } finally {
      // Reading /proc leaves nothing behind.
      if (!String(args[0]).startsWith('/proc') && ++done === Number(count)) {
        if (signal === 'SIGSTOP') writeSync(1, 'stopped\n');
        process.kill(process.pid, signal);
      }
    }
  };
}

// Before any operation is counted: the loader reads files, too.
const { ownLock } = await import(lock);
const handle = await fs.open(dirname(path), 'r');
for (const name of ['writeFile', 'sync', 'close']) watch(Object.getPrototypeOf(handle), name);
await handle.close();
for (const name of ['readdir', 'readFile', 'open', 'link', 'lstat', 'chmod', 'rm']) watch(fs, name);
syncBuiltinESMExports();
done = 0;

try {
  const held = await ownLock(path, { inUse: (by) => new Error(`in use by ${by}`) });
  writeSync(1, 'locked\n');
  if (count === '0') setInterval(() => {}, 1_000);
  else await held.release();
} catch (error) {
  writeSync(1, error.message.startsWith('in use by ') ? `refused: ${error.message}\n` : `${error.stack}\n`);
}
