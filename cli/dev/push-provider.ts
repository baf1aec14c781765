/**
 * `svc dev push-provider`: a push provider on this machine, for trying notifications without an account at the real
 * one.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { replaceJson } from '../../platform/node/index.ts';
import { integer, listenPort } from '../frame/arguments.ts';
import { namingPorts } from '../frame/listening.ts';
import { Output } from '../frame/output.ts';
import { interruption, stopped } from '../frame/signals.ts';
import { PushEmulator } from './push-emulator.ts';
import { type PushError, pushError, pushErrors } from './push-errors.ts';

interface Options {
  port: number;
  project: string;
  account?: string;
  answer?: PushError;
  retryAfter?: number;
  json?: boolean;
}

/** The command `svc dev`, which has one: `push-provider`. */
export function devCommand(): Command {
  const pushProvider = new Command('push-provider')
    .description("run an emulator of the push provider's HTTP v1 interface on loopback; it prints each message")
    .option('--port <number>', 'TCP port on 127.0.0.1; 0 = a free port', listenPort, 0)
    .option('--project <id>', 'the only project it knows', project, 'demo-project')
    .option('--account <file>', 'write the service account it accepts, for svc admin push-credential add')
    .addOption(new Option('--answer <error>', 'answer every message with this error').choices([...pushErrors]))
    .option('--retry-after <seconds>', 'with --answer: the wait that it requests', (text) =>
      integer(text, 0, 3600, 'expected 0 to 3600 seconds'),
    )
    .option('--json', 'print events as JSON lines')
    .addHelpText(
      'after',
      `\nA registration token that is the name of an error is answered with it:\n  ${pushErrors.join(' ')}\nand QUOTA_EXCEEDED:5 asks to wait 5 seconds.`,
    )
    .action(run);
  return new Command('dev').description('helpers for development').addCommand(pushProvider);
}

async function run(options: Options): Promise<void> {
  const output = new Output(options.json === true);
  const interrupt = interruption();
  try {
    const emulator = await namingPorts({ '--port': options.port }, () =>
      PushEmulator.start({
        projectId: options.project,
        port: options.port,
        onReceived: (push) => output.result({ event: 'message', ...push }, `${push.name}  ${JSON.stringify(push.message)}`),
      }),
    );
    if (options.answer !== undefined) emulator.answerAlways(pushError(options.answer, options.retryAfter ?? null));
    try {
      if (options.account !== undefined) await replaceJson(options.account, emulator.account);
      output.result(
        { event: 'listening', url: emulator.url, project: options.project, account: options.account ?? null },
        `push provider of project ${options.project} at ${emulator.url}; Ctrl-C ends it`,
      );
      await stopped(interrupt.signal);
    } finally {
      await emulator.close();
    }
  } finally {
    interrupt.dispose();
  }
}

function project(text: string): string {
  if (!/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/.test(text))
    throw new InvalidArgumentError('A project id is 6 to 30 small letters, digits or "-", beginning with a letter.');
  return text;
}
