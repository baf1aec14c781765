/** nginx as a reverse proxy of a base station, configured as in `docs/rest.md`. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromRoot } from '../../../bench/root.ts';
import { TestProcess } from '../../support/process.ts';
import type { Namespace } from '../namespaces.ts';
import { certificateFiles } from './blocked.ts';

export const hasNginx = spawnSync('nginx', ['-v']).status === 0;

/** Starts it with TLS on port 443 of an address there. It forwards to the base station on loopback. */
export async function startNginx(namespace: Namespace, folder: string, address: string): Promise<TestProcess> {
  const { cert, key } = await certificateFiles(folder, address);
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, configuration({ folder, address, cert, key }));
  const nginx = new TestProcess('ip', ['netns', 'exec', namespace.name, 'nginx', '-p', folder, '-c', file, '-g', 'daemon off;']);
  while (!namespace.run('ss', '-Hltn', 'sport', '=', ':443').includes(':443')) {
    if (!nginx.running) throw nginx.failure('ended at once');
    await sleep(20);
  }
  return nginx;
}

function configuration({ folder, address, cert, key }: Readonly<Record<'folder' | 'address' | 'cert' | 'key', string>>): string {
  // One process, which ends when it is killed.
  return `master_process off;
pid ${folder}/nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
  access_log off;
  server {
    listen ${address}:443 ssl;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
${documented()}
  }
}`;
}

/** The block of the document. */
function documented(): string {
  const [block] = /^ {4}location = \/svc\/v1 \{.*# nginx\n[\s\S]*?^ {4}\}$/m.exec(readFileSync(fromRoot('docs/rest.md'), 'utf8')) ?? [];
  if (block === undefined) throw new Error('docs/rest.md has no configuration of nginx');
  return block;
}
