/**
 * docs/errors.md against the code, in both directions: each code has a row, and each row has a code. What the code says
 * of itself (meaning, status, what it becomes) is generated; after a change write it with
 * `npx vitest run test/policy/errors.test.ts -u`. Remedies, parties and operations are written by hand.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import * as client from '../../client/node.ts';
import * as device from '../../device/index.ts';
import { PushNotification } from '../../device/push.ts';
import { ServiceInvocation } from '../../device/service-invocation.ts';
import { formatStatus } from '../../protocol/coap/index.ts';
import {
  CloseCode,
  catalogue,
  closeError,
  type ErrorCode,
  StationCode,
  StreamCode,
  stationCodeMeaning,
  streamError,
  TransportCode,
} from '../../protocol/errors/index.ts';
import * as server from '../../server/index.ts';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const text = read('docs/errors.md');

const PARTIES = ['client program', 'person', 'device maker', 'operator'];
const exported: Readonly<Record<string, unknown>> = { ...client, ...device, ...server, PushNotification, ServiceInvocation };
const commands = COMMANDS.map(({ name }) => `svc ${name}`);

/** Cells of a row by the names of their columns. */
type Row = Readonly<Record<string, string>>;

/** Heading of a table of codes → what generates cells of its rows, by the code; undefined for an unknown code. */
const GENERATED: Readonly<Record<string, (code: string) => Row | undefined>> = {
  'Codes of the client and of pairing': ofCatalogue,
  'Codes of the device': ofCatalogue,
  'Codes of both SDKs': ofCatalogue,
  'Codes that are never raised': ofCatalogue,
  'Why a connection ended': ofClose,
  'Why a stream or a tunnel connection was refused or ended': ofStream,
  'What a base station refuses': ofStation,
};
const CATALOGUE_TABLES = Object.keys(GENERATED).filter((heading) => GENERATED[heading] === ofCatalogue);
const NEVER = 'Codes that are never raised';
const SOURCES = ['bindings', 'protocol', 'platform', 'runtime', 'testing', 'client', 'device', 'server'];

describe('docs/errors.md', () => {
  it('says what the code says', async () => {
    await expect(generated(text)).toMatchFileSnapshot(fileURLToPath(new URL('docs/errors.md', root)));
  });

  it('has each code of the catalogue once, in order', () => {
    const tables = CATALOGUE_TABLES.map((heading) => codes(heading));
    for (const table of tables) expect(table).toEqual(table.toSorted());
    expect(tables.flat().toSorted()).toEqual(Object.keys(catalogue).toSorted());
  });

  it('knows which codes are never raised', () => {
    const sources = SOURCES.flatMap((folder) => filesOf(folder)).filter((path) => path !== 'protocol/errors/catalogue.ts');
    const all = sources.map(read).join('\n');
    const raised = Object.keys(catalogue).filter((code) => all.includes(`'${code}'`));
    const documented = CATALOGUE_TABLES.filter((heading) => heading !== NEVER).flatMap(codes);
    expect(raised.filter((code) => code !== 'OK').toSorted()).toEqual(documented.toSorted());
  });

  it.each([
    ['Why a connection ended', { ...CloseCode }, { ...TransportCode }],
    ['Why a stream or a tunnel connection was refused or ended', { ...StreamCode }],
    ['What a base station refuses', { ...StationCode }],
  ])('%s: has each number', (heading, ...known) => {
    const listed = tables(heading).filter(([row]) => row?.number !== undefined);
    expect(listed.map((rows) => rows.map(({ code, number }) => [code, Number(number)]))).toEqual(known.map((each) => Object.entries(each)));
  });

  it('has each type of the REST interface', () => {
    const [, types = ''] = /^export type ErrorType = (.*);$/m.exec(read('server/rest/errors.ts')) ?? [];
    expect(codes('The REST interface of a base station')).toEqual([...types.matchAll(/'(\w+)'/g)].map(([, type]) => type));
  });

  const remedied = Object.keys(GENERATED)
    .filter((heading) => heading !== NEVER)
    .flatMap((heading) => tables(heading)[0]!.map((row) => [heading, row.code!, row] as const));

  it.each(remedied)('%s: %s has a remedy, the party that can apply it, and operations that exist', (_, __, { remedy, who, operations }) => {
    expect(remedy).toMatch(/\w/);
    expect(who!.split(', ').filter((party) => !PARTIES.includes(party))).toEqual([]);
    const named = [...operations!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!).filter((name) => name !== 'ServerJwtToken');
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((name) => !isOperation(name))).toEqual([]);
  });
});

/** Paths of its sources, from the root. */
function filesOf(folder: string): string[] {
  const names = readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`);
}

/** `Class.method`, `Class.*`, a function of an entry point, or a command. */
function isOperation(name: string): boolean {
  if (name.startsWith('svc ')) return commands.includes(name);
  const [owner = '', member] = name.split('.');
  const found = exported[owner];
  if (typeof found !== 'function') return false;
  return member === undefined || member === '*' || member in found || member in found.prototype;
}

function ofCatalogue(code: string): Row | undefined {
  return Object.hasOwn(catalogue, code) ? { meaning: catalogue[code as ErrorCode].meaning } : undefined;
}

function ofClose(code: string): Row | undefined {
  const number = CloseCode[code as keyof typeof CloseCode];
  if (number === undefined) return undefined;
  const { code: becomes, message: meaning } = closeError(number);
  return { becomes, meaning };
}

function ofStream(code: string): Row | undefined {
  const number = StreamCode[code as keyof typeof StreamCode];
  if (number === undefined) return undefined;
  const { code: becomes, message: meaning } = streamError(number);
  return { becomes, meaning };
}

function ofStation(code: string): Row | undefined {
  const meaning = stationCodeMeaning(StationCode[code as keyof typeof StationCode]);
  return meaning && { status: formatStatus(meaning.status), becomes: meaning.error, meaning: meaning.message };
}

/** Returns the document with its generated cells. */
function generated(document: string): string {
  const sections = document.split(/^(?=## )/m).map((section) => {
    const generate = GENERATED[headingOf(section)];
    return generate === undefined ? section : withCells(section, generate);
  });
  return sections.join('');
}

/** The first table of codes of a section, with the cells that `generate` has. */
function withCells(section: string, generate: (code: string) => Row | undefined): string {
  const [, before = '', table = '', after = ''] = /^([\s\S]*?\n)(\| code [\s\S]*?\n)((?!\|)[\s\S]*)$/.exec(`${section}\n`) ?? [];
  const [head = '', ...lines] = table.trimEnd().split('\n');
  const columns = cells(head);
  const filled = lines.map((line) => {
    const values = cells(line);
    const made = generate(values[0]!);
    if (made === undefined) return line;
    return `|${columns.map((column, index) => ` ${made[column] ?? values[index]} `).join('|')}|`.replaceAll(/ {2,}/g, ' ');
  });
  return [before, [head, ...filled].join('\n'), '\n', after.slice(0, -1)].join('');
}

/** The tables of codes of a section. */
function tables(heading: string): Row[][] {
  const section = text.split(/^(?=## )/m).find((each) => headingOf(each) === heading);
  if (section === undefined) throw new Error(`docs/errors.md has no section "${heading}"`);
  return [...section.matchAll(/^\| code .*\n\|[-|]+\|\n((?:\|.*\n?)*)/gm)].map(([table, body = '']) => {
    const columns = cells(table.split('\n')[0]!);
    return body
      .trimEnd()
      .split('\n')
      .map((line) => Object.fromEntries(cells(line).map((cell, index) => [columns[index]!, cell])));
  });
}

function codes(heading: string): string[] {
  return tables(heading)[0]!.map(({ code }) => code!);
}

function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function headingOf(section: string): string {
  return /^## (.*)$/m.exec(section)?.[1] ?? '';
}
