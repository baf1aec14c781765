/**
 * Network namespaces of the lab. Their names contain the process id of their run, so that its end removes exactly its
 * own (`setup.ts`).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import type { Program } from '../../bench/processes/parent.ts';

let made = 0;

/**
 * A new namespace with its loopback up. Without IPv6 unless requested: IPv6's own packets would consume random numbers
 * of a link's seed.
 */
export class Namespace {
  readonly name: string;

  constructor({ ipv6 = false }: { ipv6?: boolean } = {}) {
    made += 1;
    this.name = `${namePrefix(process.env.SVC_LAB_RUN)}${process.pid}-${made}`;
    ip('netns', 'add', this.name);
    if (!ipv6) this.set('net/ipv6/conf/default/disable_ipv6', '1');
    // Otherwise an address is unusable for a second of duplicate address detection (RFC 4862 §5.4).
    else this.set('net/ipv6/conf/default/dad_transmits', '0');
    this.run('ip', 'link', 'set', 'lo', 'up');
  }

  /** Sets a key in `sysctl`'s dotted form if it exists: small systems lack `sysctl`, and a kernel may lack IPv6. */
  set(name: string, value: string): void {
    this.run('sh', '-c', `echo ${value} 2> /dev/null > /proc/sys/${name} || true`);
  }

  /** Runs commands of `ip`, one a line. */
  ip(commands: string): void {
    execFileSync('ip', ['-n', this.name, '-batch', '-'], { input: commands });
  }

  /** Runs commands of `nft`, as a whole or not at all. */
  nft(commands: string): void {
    execFileSync('ip', ['netns', 'exec', this.name, 'nft', '-f', '-'], { input: commands });
  }

  /** Runs a command inside to its end. @returns its output */
  run(...command: string[]): string {
    return ip('netns', 'exec', this.name, ...command);
  }

  /** The same program, to be started inside. */
  inside(program: Program): Program {
    const command = program.command ?? [process.execPath];
    return { ...program, command: ['ip', 'netns', 'exec', this.name, ...command] };
  }

  /** Packets that IPv4 fragmented here, or could not reassemble. */
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

/** Prefix of the names of a run. @param run its process id */
export function namePrefix(run: number | string | undefined): string {
  return `svc-lab-${run}-`;
}

/** Ends the processes inside, all started by this lab, and deletes the namespace. */
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
