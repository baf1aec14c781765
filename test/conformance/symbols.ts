/**
 * Looks up a symbol in the build.
 *
 *   device:Device.start                a member of a class (prototype, static or instance) or of an object that a
 *   module exports
 *   device:DeviceEvent.ATTACHED        a member of an exported type, from the text of its declaration
 *   device:Device                      an export
 *   device/tunnels:TcpTunnels[GET /x]  an element of an exported table of endpoints, where `*` is any segment; or the
 *   path as a string of the module
 *
 * `device`, `client` and `server` are the entry points of the package, anything else is a file below `dist`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The form in which a test uses it. */
export type SymbolUse = 'method' | 'function' | 'word' | 'endpoint';

export interface FoundSymbol {
  /** The text that a test has to contain. */
  readonly member: string;
  readonly use: SymbolUse;
}

/** Modules with short names. */
export const ENTRIES: Readonly<Record<string, string>> = { device: 'device/index', client: 'client/node', server: 'server/index' };

const SYMBOL = /^(?<module>[\w/-]+):(?<name>\w+)(?:\.(?<member>\w+)|\[(?<path>[A-Z]+ \/[^\]]*)\])?$/;

export interface SymbolParts {
  readonly module: string;
  readonly name: string;
  readonly member?: string;
  readonly path?: string;
}

/** The parts of a symbol, null when it is none. */
export function partsOf(symbol: string): SymbolParts | null {
  return (SYMBOL.exec(symbol)?.groups as SymbolParts | undefined) ?? null;
}

/** The symbols of a build. */
export class Symbols {
  readonly #dist: string;

  constructor(dist: string) {
    this.#dist = dist;
  }

  /** The symbol, or a text that names the missing part. */
  async find(symbol: string): Promise<FoundSymbol | string> {
    const parts = partsOf(symbol);
    if (parts === null) return `not a symbol: ${symbol}`;
    const module = join(this.#dist, ENTRIES[parts.module] ?? parts.module);
    if (!existsSync(`${module}.js`)) return `no module ${parts.module}`;
    const exported = ((await import(/* @vite-ignore */ pathToFileURL(`${module}.js`).href)) as Record<string, unknown>)[parts.name];
    if (parts.path !== undefined)
      return endpointOf(exported, parts.path, readFileSync(`${module}.js`, 'utf8')) ?? `no endpoint ${parts.path}`;
    const found =
      valueMember(exported, parts.name, parts.member) ?? typeMember(declarationOf(module, parts.name), parts.name, parts.member);
    return found ?? `no ${parts.name}${parts.member === undefined ? '' : `.${parts.member}`} in ${parts.module}`;
  }

  /** Whether a symbol is declared as a method that returns a promise. */
  returnsPromise(symbol: string): boolean {
    const { module = '', name = '', member } = partsOf(symbol) ?? {};
    const declaration = declarationOf(join(this.#dist, ENTRIES[module] ?? module), name) ?? '';
    return new RegExp(`^ +(?:get )?${member}(?:<[^>]*>)?\\([^;]*(?:{[^}]*}[^;]*)*\\): Promise<`, 'm').test(declaration);
  }
}

function endpointOf(exported: unknown, path: string, code: string): FoundSymbol | null {
  if (exported === undefined) return null;
  const [, pattern = ''] = path.split(' ');
  const wanted = new RegExp(`^${path.replace(/[{}]/g, '\\$&').replace('*', '[^/]+')}$`);
  const there = Array.isArray(exported)
    ? (exported as { method: string; path: string }[]).some((row) => wanted.test(`${row.method} ${row.path}`))
    : code.includes(`'${pattern}'`);
  return there ? { member: path, use: 'endpoint' } : null;
}

function valueMember(exported: unknown, name: string, member: string | undefined): FoundSymbol | null {
  if (exported === undefined || exported === null) return null;
  if (member === undefined) return { member: name, use: typeof exported !== 'function' || isClass(exported) ? 'word' : 'function' };
  if (typeof exported !== 'function') return Object.hasOwn(exported, member) ? { member, use: 'word' } : null;
  const owners: object[] = [];
  for (let owner = exported; owner !== null && owner !== Function.prototype; owner = Object.getPrototypeOf(owner)) owners.push(owner);
  for (let owner = exported.prototype; owner !== null && owner !== Object.prototype; owner = Object.getPrototypeOf(owner))
    owners.push(owner);
  const found = owners.map((owner) => Object.getOwnPropertyDescriptor(owner, member)).find((descriptor) => descriptor !== undefined);
  return found === undefined ? null : { member, use: typeof found.value === 'function' ? 'method' : 'word' };
}

function isClass(value: object): boolean {
  return /^class\b/.test(Function.prototype.toString.call(value));
}

function typeMember(declaration: string | null, name: string, member: string | undefined): FoundSymbol | null {
  if (declaration === null) return null;
  if (member === undefined) return { member: name, use: 'word' };
  const use = /^export interface/.test(declaration) ? 'function' : 'method';
  if (new RegExp(`^ +(?:static )?${member}(?:<[^>]*>)?\\(`, 'm').test(declaration)) return { member, use };
  const there = new RegExp(`^ +(?:readonly |static |get )*${member}(?:\\??:|\\(\\):)|'${member}'`, 'm').test(declaration);
  return there ? { member, use: 'word' } : null;
}

/**
 * The declaration of an exported type without its comments, also where the module re-exports it; null when it exports
 * none of that name.
 */
function declarationOf(module: string, name: string): string | null {
  const file = `${module}.d.ts`;
  if (!existsSync(file)) return null;
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const head = `^export (?:declare )?(?:abstract )?`;
  const body = new RegExp(`${head}(?:class|interface) ${name}\\b[\\s\\S]*?^}`, 'm').exec(text);
  const alias = new RegExp(`${head}(?:type|const|function) ${name}\\b(?:[^\\n]*;$|[\\s\\S]*?^(?:}| +\\|)[^\\n]*;$)`, 'm').exec(text);
  const own = body ?? alias;
  if (own !== null) return own[0];
  for (const [, names = '', from = ''] of text.matchAll(/export (?:type )?{([^}]*)} from '([^']+)'/g)) {
    const exported = names.split(',').map((each) => each.replace(/^\s*(?:type )?|\s+$/g, '').split(' as '));
    const match = exported.find((each) => each.at(-1) === name);
    if (match !== undefined) return declarationOf(moduleOf(file, from), match[0] ?? name);
  }
  const all = [...text.matchAll(/export \* from '([^']+)'/g)].map(([, from = '']) => declarationOf(moduleOf(file, from), name));
  return all.find((found) => found !== null) ?? null;
}

/** The module of a declaration file. */
function moduleOf(file: string, specifier: string): string {
  return join(dirname(file), specifier.replace(/\.(?:d\.)?[jt]s$/, ''));
}
