/**
 * The other transports and their processes: which exist, which are installed, and which of them a bench measures.
 *
 * Their scripts are in `bench/peers/`, a separate package with its own lock file, which `npm run bench -- peers`
 * installs. The report names a peer that is missing or cannot run here, with the reason. Such a peer never fails the
 * bench.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Program } from './processes/parent.ts';
import { fromRoot } from './root.ts';

/** The peers that a bench measures, and the others, each with the reason. */
export interface Selection {
  readonly peers: readonly Program[];
  readonly absent: Readonly<Record<string, string>>;
}

interface Known {
  readonly name: string;
  /** Packages that must be installed; none for a peer that is part of Node. */
  readonly packages: readonly string[];
  /** Needs the newer Node that is installed beside it. */
  readonly newer?: true;
}

const FOLDER = fromRoot('bench/peers/');
const NEWER_NODE = `node-${process.platform}-${process.arch}`;

const known: readonly Known[] = [
  { name: 'tcp', packages: [] },
  { name: 'tls', packages: [] },
  { name: 'udx', packages: ['udx-native', '@hyperswarm/secret-stream'] },
  { name: 'libp2p-tcp', packages: ['libp2p', '@libp2p/tcp', '@libp2p/noise', '@libp2p/yamux'], newer: true },
  { name: 'libp2p-quic', packages: ['libp2p', '@chainsafe/libp2p-quic'], newer: true },
  { name: 'node-datachannel', packages: ['node-datachannel'] },
  { name: 'iroh', packages: ['@number0/iroh'] },
];

export const peerNames: readonly string[] = known.map(({ name }) => name);

/** Returns a name in `wanted` that is not a peer's. */
export function unknownPeer(wanted?: string): string | undefined {
  return names(wanted).find((name) => !peerNames.includes(name));
}

/** Selects the peers to measure. @param wanted 'all' (default), 'none', or names separated by commas */
export function select(wanted?: string): Selection {
  const peers: Program[] = [];
  const absent: Record<string, string> = {};
  for (const peer of known.filter(({ name }) => names(wanted).includes(name))) {
    const reason = missing(peer);
    if (reason === null) peers.push({ name: peer.name, script: `${FOLDER}${peer.name}.mjs`, command: [node(peer.newer)] });
    else absent[peer.name] = reason;
  }
  return { peers, absent };
}

/**
 * Installs the peers in the locked versions, without install scripts. It does not use `npm ci`, which fails when the
 * registry lacks a package for another platform. It installs a second time with the newer Node, since npm omits
 * optional packages for which its own Node is too old.
 */
export function install(): void {
  npm(process.execPath);
  if (existsSync(node(true))) npm(node(true));
}

function npm(executable: string): void {
  const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', FOLDER];
  const script = process.env.npm_execpath;
  const [file, before] = script === undefined ? ['npm', []] : [executable, [script]];
  const { status } = spawnSync(file, [...before, ...args], { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error('npm install failed in bench/peers');
}

function names(wanted = 'all'): readonly string[] {
  if (wanted === 'none') return [];
  return wanted === 'all' ? peerNames : wanted.split(',');
}

/** Returns why a peer cannot be measured here, or null. */
function missing({ packages, newer }: Known): string | null {
  const wanted = newer ? [...packages, NEWER_NODE] : packages;
  const first = wanted.find((name) => !existsSync(`${FOLDER}node_modules/${name}/package.json`));
  return first === undefined ? null : `${first} is not installed (npm run bench -- peers)`;
}

function node(newer: true | undefined): string {
  return newer ? `${FOLDER}node_modules/${NEWER_NODE}/bin/node` : process.execPath;
}
