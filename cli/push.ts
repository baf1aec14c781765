/** `svc push`: the destination and categories of a user's push notifications, and a test. */
import { Command } from 'commander';
import type { TargetOptions } from './client/target.ts';
import { CommandError, UsageError } from './frame/errors.ts';
import { type IamOpened, iamSubcommand, withIam, withTargets } from './iam/shared.ts';

interface PushOptions extends TargetOptions {
  user?: string;
}

/** `svc push set|categories|test`. */
export function pushCommand(): Command {
  const command = new Command('push').description('push notifications of a user');
  return withTargets(command.addCommand(set()).addCommand(categories()).addCommand(test()));
}

function set(): Command {
  return pushSubcommand('set', 'set where the notifications go')
    .argument('<project>', 'project id at the provider')
    .argument('<token>', 'registration token of the application to notify')
    .action((projectId: string, token: string, options: PushOptions) =>
      withIam(options, async (opened) => {
        const username = await userOf(opened, options);
        await opened.iam.updateUserPush(username, { token, projectId });
        opened.output.result({ username, projectId }, `${username} is notified through ${projectId}`);
      }),
    );
}

function categories(): Command {
  return pushSubcommand('categories', 'show the notification categories, or choose some')
    .argument('[category...]', 'replaces all chosen before')
    .option('--clear', 'be notified of nothing')
    .action(async (chosen: string[], options: PushOptions & { clear?: boolean }) => {
      if (options.clear === true && chosen.length > 0) throw new UsageError('give categories or --clear, not both');
      await withIam(options, (opened) =>
        options.clear === true || chosen.length > 0 ? choose(opened, chosen, options) : show(opened, options),
      );
    });
}

async function choose(opened: IamOpened, chosen: readonly string[], options: PushOptions): Promise<void> {
  const username = await userOf(opened, options);
  await opened.iam.updateUserNotificationCategories(username, chosen);
  opened.output.result({ username, chosen }, `${username} is notified of ${chosen.length === 0 ? 'nothing' : chosen.join(', ')}`);
}

async function show({ iam, output }: IamOpened, { user }: PushOptions): Promise<void> {
  const available = await iam.getNotificationCategories();
  const { username, notificationCategories: chosen } = user === undefined ? await iam.getCurrentUser() : await iam.getUser(user);
  const lines = available.map((name) => `${chosen.includes(name) ? '*' : ' '} ${name}`);
  output.result({ username, available, chosen }, lines.length === 0 ? 'the device has no notification categories' : lines);
}

function test(): Command {
  return pushSubcommand('test', "let the device send a test notification, and show the provider's answer").action((options: PushOptions) =>
    withIam(options, async (opened) => {
      const username = await userOf(opened, options);
      const { statusCode, body } = await opened.iam.sendUserPushTest(username);
      const taken = statusCode >= 200 && statusCode < 300;
      opened.output.result({ username, statusCode, body }, [
        `the provider answered ${statusCode}`,
        ...(body === '' ? [] : body.split('\n')),
      ]);
      if (!taken) throw new CommandError(`the provider did not accept the notification (HTTP ${statusCode})`);
    }),
  );
}

function pushSubcommand(name: string, description: string): Command {
  return iamSubcommand(name, description).option('--user <name>', 'the user (default: that of this client)');
}

async function userOf({ iam }: IamOpened, { user }: PushOptions): Promise<string> {
  return user ?? (await iam.getCurrentUser()).username;
}
