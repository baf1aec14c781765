/** `svc iam` for the device and this client: its user, pairing modes, roles, settings and name. */
import { Argument, Command } from 'commander';
import type { DeviceDetails, DeviceSettings, SettingName } from '../../client/node.ts';
import { settingFields } from '../../protocol/records/index.ts';
import type { TargetOptions } from '../client/target.ts';
import { iamSubcommand, printNames, table, userLines, withIam } from './shared.ts';

const NO_LOCAL_INITIAL = `
Local initial pairing is not among the settings of a device: \`svc iam modes\` over a local connection shows whether it is open, and
svc device --pairing turns it on and off.`;

/** `svc iam me`. */
export function meCommand(): Command {
  return iamSubcommand('me', 'show who this client is to the device').action((options: TargetOptions) =>
    withIam(options, async ({ iam, output }) => {
      const user = await iam.getCurrentUser();
      output.result(user, userLines(user));
    }),
  );
}

/** `svc iam modes`. */
export function modesCommand(): Command {
  return iamSubcommand('modes', 'show what the device is, and how this client can pair with it over this connection').action(
    (options: TargetOptions) =>
      withIam(options, async ({ iam, output }) => {
        const details = await iam.getDeviceDetails();
        output.result(details, detailLines(details));
      }),
  );
}

/** `svc iam roles`. */
export function rolesCommand(): Command {
  return iamSubcommand('roles', 'list the roles users can have').action((options: TargetOptions) =>
    withIam(options, async (opened) => printNames(opened, await opened.iam.listRoles(), 'no roles')),
  );
}

/** `svc iam settings show|set`. */
export function settingsCommand(): Command {
  const show = iamSubcommand('show', 'show which pairing modes are on, and the password of open pairing').action((options: TargetOptions) =>
    withIam(options, async ({ iam, output }) => {
      const settings = await iam.getSettings();
      output.result(settings, settingLines(settings));
    }),
  );
  const set = iamSubcommand('set', 'turn a pairing mode on or off')
    .addArgument(new Argument('<setting>').choices(Object.keys(settingFields)))
    .addArgument(new Argument('<state>').choices(['on', 'off']))
    .action((name: SettingName, state: 'on' | 'off', options: TargetOptions) =>
      withIam(options, async ({ iam, output }) => {
        await iam.updateSetting(name, state === 'on');
        output.result({ setting: name, on: state === 'on' }, `${name} is ${state}`);
      }),
    );
  for (const command of [show, set]) command.addHelpText('after', NO_LOCAL_INITIAL);
  return new Command('settings').description('pairing modes').addCommand(show).addCommand(set);
}

/** `svc iam friendly-name`. */
export function friendlyNameCommand(): Command {
  return iamSubcommand('friendly-name', 'name the device')
    .argument('<name>', 'at most 64 bytes')
    .action((name: string, options: TargetOptions) =>
      withIam(options, async ({ iam, output }) => {
        await iam.updateFriendlyName(name);
        output.result({ friendlyName: name }, `the device is called ${name}`);
      }),
    );
}

function detailLines({ modes, productId, deviceId, friendlyName, appName, appVersion, svcVersion }: DeviceDetails): string[] {
  return table([
    ['device', `${productId ?? '?'}.${deviceId ?? '?'}`],
    ['name', friendlyName],
    ['application', appName === undefined ? undefined : `${appName} ${appVersion ?? ''}`.trim()],
    ['SDK', svcVersion],
    ['pairing', modes.length === 0 ? 'not over this connection' : modes.join(', ')],
  ]);
}

function settingLines(settings: DeviceSettings): string[] {
  return table([
    ['password-open-pairing', onOff(settings.passwordOpenPairing)],
    ['password-invite-pairing', onOff(settings.passwordInvitePairing)],
    ['local-open-pairing', onOff(settings.localOpenPairing)],
    ['password of open pairing', settings.passwordOpenPassword],
    ['token of open pairing', settings.passwordOpenSct],
  ]);
}

function onOff(on: boolean): string {
  return on ? 'on' : 'off';
}
