/** Common parts of `svc iam` and `svc push`: a connection with its access control, and how users are shown. */
import { Command } from 'commander';
import { IamUtil, type UserRecord } from '../../client/node.ts';
import { type OpenConnection, withConnection } from '../client/open.ts';
import { type TargetOptions, withTarget } from '../client/target.ts';
import { commandLine, shellWord, stateOption } from '../frame/shell-word.ts';

export interface IamOpened extends OpenConnection {
  readonly iam: IamUtil;
}

export function iamSubcommand(name: string, description: string): Command {
  return new Command(name).description(description);
}

/** Adds the options that name the device to every command with an action, after its own. */
export function withTargets(command: Command): Command {
  if (command.commands.length === 0) return withTarget(command);
  for (const child of command.commands) withTargets(child);
  return command;
}

/** Connects, runs `work`, closes. */
export function withIam(options: TargetOptions, work: (opened: IamOpened) => Promise<void>): Promise<void> {
  return withConnection(options, (opened) => work({ ...opened, iam: new IamUtil(opened.connection) }));
}

/** A user for a person to read. */
export function userLines(user: UserRecord): string[] {
  const { username, displayName, role, fingerprints, sct, sctOmitted, push, notificationCategories, oauthSubject } = user;
  const rows: [string, string | undefined][] = [
    ['username', username],
    ['display name', displayName],
    ['role', role ?? 'none: everything is denied'],
    ...fingerprints.map((each): [string, string] => ['fingerprint', keyText(each)]),
    ['token', sctOmitted ? `${sct}  (the base station has no capacity for it: local connections only)` : sct],
    ['push', push === undefined ? undefined : `${push.projectId ?? ''} ${push.token ?? ''}`],
    ['notified of', notificationCategories.length === 0 ? undefined : notificationCategories.join(', ')],
    ['OAuth subject', oauthSubject],
  ];
  return table(rows);
}

/** The keys of a user for a person, and how to remove one. */
export function keyLines(
  { username, fingerprints }: Pick<UserRecord, 'username' | 'fingerprints'>,
  { device, state }: { device: string; state: string | undefined },
): string[] {
  const remove = commandLine('svc iam fingerprints remove', [username, 'FINGERPRINT'], ` -d ${shellWord(device)}${stateOption(state)}`);
  return [...fingerprints.map(keyText), `a lost one is removed by  ${remove}`];
}

function keyText({ fingerprint, name, added, lastUsed }: UserRecord['fingerprints'][number]): string {
  const days = [...(added === undefined ? [] : [`added ${added}`]), ...(lastUsed === undefined ? [] : [`last used ${lastUsed}`])];
  return [fingerprint, ...(name === undefined ? [] : [name]), ...(days.length === 0 ? [] : [days.join(', ')])].join('  ');
}

/** Names and values in two columns; those without a value are left out. */
export function table(rows: readonly (readonly [string, string | undefined])[]): string[] {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(width)}  ${value}`]));
}

/** One name per line; with --json an array. */
export function printNames({ output }: IamOpened, names: readonly string[], none: string): void {
  output.result(names, names.length === 0 ? none : names);
}
