/**
 * Network namespaces of the lab. Their names carry the process id of the run they belong to, so that its end removes all of them and no others
 * (`setup.ts`).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import type { Program } from '../../bench/processes/parent.ts';

let made = 0;

/** A new namespace with its loopback up. Without IPv6, whose own packets would take part in what a link's seed decides, unless it is asked for. */
export class Namespace {
  readonly name: string;

  constructor({ ipv6 = false }: { ipv6?: boolean } = {}) {
    made += 1;
    this.name = `${namePrefix(process.env.SVC_LAB_RUN)}${process.pid}-${made}`;
    ip('netns', 'add', this.name);
    if (!ipv6) this.set('net/ipv6/conf/default/disable_ipv6', '1');
    // Otherwise no address is of use for a second, while others might say that they have it (RFC 4862 §5.4).
    else this.set('net/ipv6/conf/default/dad_transmits', '0');
    this.run('ip', 'link', 'set', 'lo', 'up');
  }

  /** Sets what `sysctl` calls by dots, where there is such a thing: small systems lack `sysctl`, and a kernel may be without IPv6. */
  set(name: string, value: string): void {
    this.run('sh', '-c', `echo ${value} 2> /dev/null > /proc/sys/${name} || true`);
  }

  /** Carries out commands of `ip`, one a line. */
  ip(commands: string): void {
    execFileSync('ip', ['-n', this.name, '-batch', '-'], { input: commands });
  }

  /** Carries out commands of `nft`, as a whole or not at all. */
  nft(commands: string): void {
    execFileSync('ip', ['netns', 'exec', this.name, 'nft', '-f', '-'], { input: commands });
  }

  /** Runs a command inside to its end. @returns what it printed */
  run(...command: string[]): string {
    return ip('netns', 'exec', this.name, ...command);
  }

  /** The same program, to be started inside. */
  inside(program: Program): Program {
    const command = program.command ?? [process.execPath];
    return { ...program, command: ['ip', 'netns', 'exec', this.name, ...command] };
  }

  /** Packets that IPv4 cut into fragments here, or could not put together. */
  fragmented(): number {
    const [names = [], values = []] = this.run('cat', '/proc/net/snmp')
      .split('\n')
      .filter((line) => line.startsWith('Ip:'))
      .map((line) => line.split(' '));
    const counter = (name: string): number => Number(values[names.indexOf(name)]);
    return counter('FragCreates') + counter('ReasmReqds');
  }

  remove(): void {
    remove(this.name);
  }
}

/** How the names of a run begin. @param run its process id */
export function namePrefix(run: number | string | undefined): string {
  return `svc-lab-${run}-`;
}

/** Ends what runs inside, which only this lab started there, and deletes the namespace. */
function remove(name: string): void {
  const pids = spawnSync('ip', ['netns', 'pids', name], { encoding: 'utf8' }).stdout.split('\n').filter(Boolean);
  for (const pid of pids) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // it has ended meanwhile
    }
  }
  spawnSync('ip', ['netns', 'del', name], { stdio: 'ignore' });
}

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8' });
}
