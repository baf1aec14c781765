/**
 * Locks a directory as `svc device` does, and sends itself a signal right after the n-th of its operations on files.
 *
 *   node lock-child.mjs <lock.js> <directory> <n> SIGKILL|SIGSTOP
 *
 * Prints `stopped` before a SIGSTOP, and `locked` or `refused` when it gets through.
 */
import { writeSync } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const [lock, directory, count, signal] = process.argv.slice(2);
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
const { lockDirectory } = await import(lock);
const handle = await fs.open(directory, 'r');
for (const name of ['writeFile', 'sync', 'close']) watch(Object.getPrototypeOf(handle), name);
await handle.close();
for (const name of ['readdir', 'readFile', 'open', 'link', 'rename', 'rm', 'stat']) watch(fs, name);
syncBuiltinESMExports();
done = 0;

try {
  const unlock = await lockDirectory(directory);
  writeSync(1, 'locked\n');
  await unlock();
} catch (error) {
  writeSync(1, error.message.includes('is in use by process') ? 'refused\n' : `${error.stack}\n`);
}
