/**
 * `svc device audit`: shows a device's records of pairing, users, settings and refusals, and verifies that they are
 * complete and unchanged. Only reads files, also while the device runs.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import {
  type AuditEntry,
  type AuditHead,
  type AuditVerdict,
  readAuditEntries,
  readAuditKey,
  verifyAuditLog,
} from '../device/audit/index.ts';
import { integer } from './frame/arguments.ts';
import { CommandError, UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { sharedOptions } from './frame/shared-options.ts';

interface AuditCommandOptions {
  data: string;
  json?: boolean;
  key?: string;
  expect?: AuditHead;
  last?: number;
  event?: string;
}

const CONFIRM = 'the key is the one kept with the log: compare it with the one you know, or give that with --key';

/** The events that the SDK writes, as docs/audit.md lists them. */
export const AUDIT_EVENTS: readonly string[] = [
  ...['log-started', 'segment-started', 'identity-changed', 'log-repaired', 'entries-lost', 'suppressed'],
  ...['device-started', 'device-stopped', 'device-event', 'paired', 'user-created', 'user-deleted', 'user-renamed', 'role-changed'],
  ...['fingerprint-added', 'fingerprint-removed', 'password-changed', 'user-setting-changed', 'setting-changed'],
  ...['configuration-changed', 'denied', 'password-failed'],
];

/** The commands `svc device audit show|verify|key|head`; --data and --json are those of `svc device`. */
export function deviceAuditCommand(): Command {
  return new Command('audit')
    .description('the audit log of a device: show it, verify it, print its public key or its last entry')
    .addCommand(show())
    .addCommand(verify())
    .addCommand(key())
    .addCommand(head());
}

function show(): Command {
  return subcommand('show', 'print the entries, the oldest first', async (options, output) => {
    const { last, event, data } = options;
    const entries = await readAuditEntries(data);
    if (event !== undefined) checkEvent(event, entries);
    const chosen = entries.filter((entry) => event === undefined || entry.Event === event);
    for (const entry of last === undefined ? chosen : chosen.slice(-last)) output.result(entry, entryText(entry));
    const verdict = await judge(options);
    if (!verdict.ok) output.warn(`the audit log is broken: ${verdict.message}`);
  })
    .addOption(new Option('--last <n>', 'only the last entries').argParser((text) => integer(text, 1, 1e9, 'a number from 1')))
    .option('--event <name>', 'only entries of this event, for example paired');
}

/** Checks the name of an event. A device may write its own events, which occur only in its log. */
function checkEvent(event: string, entries: readonly AuditEntry[]): void {
  const events = new Set([...AUDIT_EVENTS, ...entries.map(({ Event }) => Event)]);
  if (!events.has(event)) throw new UsageError(`--event ${event}: no such event; the events are ${[...events].map(shown).join(', ')}`);
}

function verify(): Command {
  return subcommand(
    'verify',
    'check every entry; exit code 1 and the first broken one when something is wrong',
    async (options, output) => {
      const verdict = await judge(options);
      if (!verdict.ok) {
        if (options.json === true) output.result(verdict, '');
        throw new CommandError(`the audit log is broken: ${verdict.message}`);
      }
      const { entries, first, head, publicKey, productId, deviceId } = verdict;
      output.result(verdict, [
        `${entries} entries, ${first} to ${head.seq}, of device ${shown(productId)}.${shown(deviceId)}: all unchanged`,
        `signed by ${publicKey}`,
        `last entry ${headText(head)}`,
      ]);
      if (options.key === undefined) output.note(CONFIRM);
      if (options.expect === undefined)
        output.note('entries missing at the end are detected only with --expect and an earlier svc device audit head');
    },
  )
    .addOption(new Option('--key <hex>', 'public key of the log, as svc device audit key printed it').argParser(publicKey))
    .addOption(new Option('--expect <seq:hash>', 'an earlier entry, as svc device audit head printed it').argParser(remembered));
}

function key(): Command {
  return subcommand('key', 'print the public key of the log', async ({ data }, output) => {
    const signer = await readAuditKey(data);
    if (signer === undefined) throw new CommandError(`there is no audit key in ${data}: a device creates it at its first start`);
    output.result({ publicKey: signer.publicKey }, signer.publicKey);
  });
}

function head(): Command {
  return subcommand('head', 'print number and hash of the last entry, to be stored elsewhere', async (options, output) => {
    const verdict = await judge(options);
    if (!verdict.ok) throw new CommandError(`the audit log is broken: ${verdict.message}`);
    output.result(verdict.head, headText(verdict.head));
  });
}

/** Verifies the log with the given key, else the one in the directory, else the one named by the log. */
async function judge({ data, key, expect }: AuditCommandOptions): Promise<AuditVerdict> {
  const known = key ?? (await readAuditKey(data))?.publicKey;
  return verifyAuditLog(data, { ...(known !== undefined && { publicKey: known }), ...(expect !== undefined && { expect }) });
}

function subcommand(name: string, description: string, run: (options: AuditCommandOptions, output: Output) => Promise<void>): Command {
  // The options are those of `svc device`, which takes them in any position: here they are for --help.
  const command = new Command(name)
    .description(description)
    .option('--data <dir>', 'directory of the device')
    .option('--json', 'JSON on standard output');
  return command.action(async () => {
    const options = sharedOptions<AuditCommandOptions>(command, ['data', 'json']);
    await run(options, new Output(options.json === true));
  });
}

/** One line: time, number, event, then the rest as `Name=value`. */
function entryText({ Seq, Time, Event, Prev: _prev, Sig: _sig, ...details }: AuditEntry): string {
  return [Time, `#${Seq}`, Event, ...Object.entries(details).map(([name, value]) => `${shown(name)}=${shown(value)}`)].join(' ');
}

/**
 * Formats a value: as JSON unless it is a single word. The content may come from an attacker, so nothing that a
 * terminal would obey or hide is printed unescaped.
 */
function shown(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:+-]+$/.test(value)) return value;
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => character.split('').map(escaped).join(''));
}

/** A code unit as JSON escapes it. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function headText({ seq, hash }: AuditHead): string {
  return `${seq}:${hash}`;
}

function publicKey(text: string): string {
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError('A public key of an audit log is 64 hexadecimal digits.');
  return text.toLowerCase();
}

function remembered(text: string): AuditHead {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/i.exec(text) ?? [];
  if (seq === undefined || hash === undefined) throw new InvalidArgumentError('Expected seq:hash, as svc device audit head prints it.');
  return { seq: Number(seq), hash: hash.toLowerCase() };
}
