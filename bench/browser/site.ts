/**
 * A web server on loopback for one browser. It serves bundled modules under the Content-Security-Policy that
 * docs/sdk.md names.
 *
 * A page at `/?task=N` loads the runner, which fetches task N and posts its outcome. No debugger evaluates code in the
 * page, since a debugger may do what the policy forbids.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { build } from 'esbuild';
import { fromRoot } from '../root.ts';
import type { Outcome, Task } from './task.ts';

/** Allows compiling WebAssembly, forbids turning text into code. */
const POLICY = "script-src 'self' 'wasm-unsafe-eval'";

const HTML = '<!doctype html><meta charset="utf-8"><title>task</title><script type="module" src="/runner.js"></script>';

interface Resource {
  readonly type: string;
  readonly body: string | Uint8Array;
}

interface Pending {
  readonly task: Task;
  readonly settle: (outcome: Outcome) => void;
}

export interface SiteOptions {
  readonly files?: Readonly<Record<string, Uint8Array>>;
  readonly policy?: string;
}

/** The server, with its files and the tasks that wait for an outcome. */
export class Site {
  readonly #server: Server;
  readonly #resources: ReadonlyMap<string, Resource>;
  readonly #policy: string;
  readonly #pending = new Map<string, Pending>();
  #tasks = 0;

  /**
   * Bundles and listens on a free port.
   * @param modules name → source file or package entry point: `/name.js`
   * @param options.files name → bytes: `/name`, as WebAssembly
   * @param options.policy another policy, for every answer
   */
  static async open(modules: Readonly<Record<string, string>>, { files = {}, policy = POLICY }: SiteOptions = {}): Promise<Site> {
    const resources = await bundle({ ...modules, runner: fromRoot('bench/browser/runner.ts') });
    resources.set('/', { type: 'text/html', body: HTML });
    // A browser requests an icon by itself, and a missing one is an error in its console.
    resources.set('/favicon.ico', { type: 'image/x-icon', body: '' });
    for (const [name, body] of Object.entries(files)) resources.set(`/${name}`, { type: 'application/wasm', body });
    const site = new Site(resources, policy);
    await new Promise<void>((resolve, reject) => {
      site.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return site;
  }

  private constructor(resources: ReadonlyMap<string, Resource>, policy: string) {
    this.#resources = resources;
    this.#policy = policy;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** Returns the URL of a page that runs `task`, and its outcome. `forget` ends the wait. */
  page(task: Task): { url: string; outcome: Promise<Outcome>; forget: () => void } {
    const id = String(++this.#tasks);
    const outcome = new Promise<Outcome>((settle) => this.#pending.set(id, { task, settle }));
    const { port } = this.#server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/?task=${id}`, outcome, forget: () => this.#pending.delete(id) };
  }

  /** Stops listening and ends open connections. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://site');
    const [, kind, id = ''] = pathname.split('/');
    const pending = this.#pending.get(id);
    if (kind === 'task' && pending) return this.#send(response, { type: 'application/json', body: JSON.stringify(pending.task) });
    if (kind === 'outcome' && pending) {
      const outcome = JSON.parse((await buffer(request)).toString()) as Outcome;
      this.#send(response, { type: 'text/plain', body: '' });
      return pending.settle(outcome);
    }
    this.#send(response, this.#resources.get(pathname));
  }

  #send(response: ServerResponse, resource: Resource | undefined): void {
    response.writeHead(resource === undefined ? 404 : 200, {
      'Content-Security-Policy': this.#policy,
      'Content-Type': resource?.type ?? 'text/plain',
      'Cache-Control': 'no-store',
    });
    response.end(resource?.body);
  }
}

/**
 * Bundles as an application does: under the conditions of a browser, with chunks for code that several entries share.
 */
async function bundle(entryPoints: Readonly<Record<string, string>>): Promise<Map<string, Resource>> {
  const { outputFiles } = await build({
    entryPoints: { ...entryPoints },
    bundle: true,
    splitting: true,
    write: false,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    outdir: '/',
    absWorkingDir: fromRoot(''),
    logLevel: 'silent',
  });
  return new Map(outputFiles.map(({ path, text }) => [`/${basename(path)}`, { type: 'text/javascript', body: text }]));
}
