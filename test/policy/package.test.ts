/** Rules of package.json: install scripts, registry, exports. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));
const lock = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8'));
const locked: [string, { hasInstallScript?: boolean; resolved?: string; dev?: boolean; version: string }][] = Object.entries(lock.packages);

describe('dependencies', () => {
  it('may not run install scripts, and each that has one is listed', () => {
    const withScript = locked.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path.replace(/^.*node_modules\//, ''));
    expect(Object.keys(manifest.allowScripts).sort()).toEqual([...new Set(withScript)].sort());
    expect(Object.values(manifest.allowScripts).every((allowed) => allowed === false)).toBe(true);
  });

  it('come from the registry only', () => {
    const elsewhere = locked.filter(
      ([path, entry]) => path !== '' && entry.resolved !== undefined && !entry.resolved.startsWith('https://registry.npmjs.org/'),
    );
    expect(elsewhere).toEqual([]);
  });

  it('keep the versions that Node 20 needs', () => {
    expect(lock.packages['node_modules/vitest'].version).toMatch(/^4\./);
    expect(lock.packages['node_modules/kysely'].version).toMatch(/^0\.28\./);
  });
});

describe('exports', () => {
  const targets = Object.values(manifest.exports as Record<string, Target>);

  it('point every subpath at a file that the build makes', () => {
    const missing = [...targets.flatMap(filesOf), ...Object.values(manifest.bin as Record<string, string>)].filter(
      (file) => !existsSync(fileURLToPath(new URL(file, root))),
    );
    expect(missing).toEqual([]);
  });

  it('give each condition the types of its own file', () => {
    const typed = targets.flatMap(conditionsOf).filter(({ default: file }) => file?.endsWith('.js'));
    expect(typed.length).toBeGreaterThan(6);
    expect(typed.filter(({ types, default: file }) => types !== file?.replace(/\.js$/, '.d.ts'))).toEqual([]);
  });

  it('have no root: an import or a require of it names the imports of the roles', async () => {
    const hint = "svc-connect has no main module: import from 'svc-connect/client', 'svc-connect/device' or 'svc-connect/server' instead";
    await expect(import('svc-connect' as string)).rejects.toThrow(hint);
    expect(() => createRequire(import.meta.url)('svc-connect')).toThrow(hint);
    expect(manifest.main).toBeUndefined();
  });
});

/** Target of an export: a file, or one for each condition, which may be nested. */
type Target = string | { [condition: string]: Target };

function filesOf(target: Target): string[] {
  return typeof target === 'string' ? [target] : Object.values(target).flatMap(filesOf);
}

/** The conditions of each level that name a file. A file without conditions around it is a default without types. */
function conditionsOf(target: Target): Record<string, string>[] {
  if (typeof target === 'string') return [{ default: target }];
  const { types, default: file, ...others } = target;
  const own = { ...(typeof types === 'string' && { types }), ...(typeof file === 'string' && { default: file }) };
  return [own, ...Object.values(others).flatMap(conditionsOf)];
}
