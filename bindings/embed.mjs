/**
 * Builds what the bindings need from the core; the root build calls it, and it runs alone as `node bindings/embed.mjs`.
 *
 * 1. `generateCodes` writes `core-as/codes.generated.ts` and `bindings/codes.generated.ts` from `core-as/codes.json`
 *    (before the AssemblyScript compiler runs);
 * 2. `embedCore` writes `bindings/core-wasm.generated.ts` with the release module as base64 (after it).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);

/** Runs both steps; the release module must exist. */
function buildBindings() {
  generateCodes();
  embedCore();
}

/** Generates the constants of both sides from one table. */
export function generateCodes() {
  const { abiVersion, ...tables } = JSON.parse(readFileSync(new URL('core-as/codes.json', root), 'utf8'));
  write('core-as/codes.generated.ts', coreCodes(abiVersion, tables));
  write('bindings/codes.generated.ts', bindingsCodes(abiVersion, tables));
}

/** Embeds the release module as a base64 string. */
export function embedCore() {
  const wasm = readFileSync(new URL('dist/core.wasm', root));
  write(
    'bindings/core-wasm.generated.ts',
    `/** Made by embed.mjs: the release module, base64. */\nexport const CORE_WASM =\n  '${wasm.toString('base64')}';\n`,
  );
}

function coreCodes(abiVersion, tables) {
  let text = `/** Made by bindings/embed.mjs from codes.json. */\nexport const ABI_VERSION: u32 = ${abiVersion};\n`;
  for (const [table, codes] of Object.entries(tables)) {
    text += '\n';
    for (const [name, [value, meaning]] of Object.entries(codes)) {
      text += `/** ${meaning} */\nexport const ${prefix(table)}_${name}: u32 = ${value};\n`;
    }
  }
  return text;
}

function bindingsCodes(abiVersion, tables) {
  let text = `/** Made by embed.mjs from core-as/codes.json. */\nexport const ABI_VERSION = ${abiVersion};\n`;
  for (const [table, codes] of Object.entries(tables)) {
    text += `\nexport const ${table} = {\n`;
    for (const [name, [value, meaning]] of Object.entries(codes)) text += `  /** ${meaning} */\n  ${name}: ${value},\n`;
    text += `} as const;\nexport type ${table} = (typeof ${table})[keyof typeof ${table}];\n`;
  }
  return text;
}

/**
 * EventKind → EVENT, Status → STATUS, TransportError → ERROR, CongestionState → STATE, PathReason → PATH_REASON: short,
 * since the core uses them often.
 */
function prefix(table) {
  return { EventKind: 'EVENT', TransportError: 'ERROR', CongestionState: 'STATE', PathReason: 'PATH_REASON' }[table] ?? table.toUpperCase();
}

/** Does not touch an unchanged file, so that no later step looks stale. */
function write(path, text) {
  const url = new URL(path, root);
  if (!existsSync(url) || readFileSync(url, 'utf8') !== text) writeFileSync(url, text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (process.argv[2] === 'codes') generateCodes();
  else buildBindings();
}
