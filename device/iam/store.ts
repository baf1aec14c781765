/**
 * Configuration and state in two files of a directory, and the password throttle in a third, each replaced as a whole
 * or not at all. A file that cannot be parsed is refused by name and stays as it is; a missing file is created from the
 * application's first configuration and state.
 */
import { join } from 'node:path';
import { aLog } from '../../platform/environment.ts';
import { prepareDirectory, readJson, replaceJson } from '../../platform/node/files.ts';
import { callback, check, checkOptions, type Kind, nonEmptyText, object, plainObject, texts } from '../../protocol/arguments.ts';
import { LocalError, SvcError } from '../../protocol/errors/index.ts';
import type { KeptDocument } from '../kept-document.ts';
import { configurationDocument, readConfiguration } from './configuration.ts';
import { defaultConfiguration } from './defaults.ts';
import { Iam, type IamOptions } from './iam.ts';
import type { IamConfiguration } from './policy.ts';
import { defaultIamLimits, Rules } from './rules.ts';
import type { IamSecrets, IamState } from './state.ts';
import { readState, stateDocument } from './state-document.ts';

export const CONFIGURATION_FILE = 'iam-configuration.json';
export const STATE_FILE = 'iam-state.json';
export const THROTTLE_FILE = 'password-throttle.json';

/** Options of access control on disk, with the first configuration and state. */
export interface IamStoreOptions extends Omit<IamOptions, 'configuration' | 'state' | 'save' | 'saveConfiguration' | 'passwordThrottle'> {
  /** Called when there is no configuration file. Default: `defaultConfiguration`. */
  readonly firstConfiguration?: () => IamConfiguration;
  /** Called when there is no state file. */
  readonly firstState: (secrets: IamSecrets) => Promise<IamState>;
}

const KINDS: Record<keyof IamStoreOptions, Kind> = {
  firstConfiguration: callback,
  firstState: callback,
  secrets: object,
  limits: plainObject,
  notificationCategories: texts,
  now: callback,
  log: aLog,
};

/**
 * Opens access control with the files of a directory, which is created if missing. From then on every change is in its
 * file before it counts. Only one process may have a directory open.
 * @throws LocalError PARSE or INVALID_ARGUMENT that names file and place, INVALID_STATE when the password of open
 *   pairing was sealed on a device with another key, FAILED when the directory cannot be used
 */
export async function openIam(directory: string, given: IamStoreOptions): Promise<Iam> {
  check('the directory', directory, nonEmptyText);
  checkOptions('access control', given, KINDS, ['firstState', 'secrets']);
  const { firstConfiguration = defaultConfiguration, firstState, ...options } = given;
  await prepareDirectory(directory);
  const [configurationPath, statePath] = [join(directory, CONFIGURATION_FILE), join(directory, STATE_FILE)];
  const saveConfiguration = (configuration: IamConfiguration) => replaceJson(configurationPath, configurationDocument(configuration));
  const save = (document: unknown) => replaceJson(statePath, document);
  const [storedConfiguration, storedState] = [await readJson(configurationPath), await readJson(statePath)];
  const configuration =
    storedConfiguration === undefined
      ? firstConfiguration()
      : await inFile(configurationPath, async () => readConfiguration(storedConfiguration));
  const state =
    storedState === undefined
      ? await firstState(options.secrets)
      : await inFile(statePath, () => readState(storedState, readOptions(options)));
  const iam = new Iam({ ...options, configuration, state, save, saveConfiguration, passwordThrottle: await keptThrottle(directory) });
  await inFile(statePath, () => iam.openPairingPassword());
  if (storedConfiguration === undefined) await saveConfiguration(configuration);
  if (storedState === undefined) await save(stateDocument(state));
  return iam;
}

function readOptions({ secrets, limits, notificationCategories = [] }: Pick<IamOptions, 'secrets' | 'limits' | 'notificationCategories'>) {
  return { secrets, rules: new Rules({ ...defaultIamLimits, ...limits }), notificationCategories };
}

/** Reads the password throttle. A damaged file must not keep the device from starting, with empty buckets. */
async function keptThrottle(directory: string): Promise<KeptDocument> {
  const path = join(directory, THROTTLE_FILE);
  const stored = await readJson(path).catch(() => null);
  return { stored, save: (document) => replaceJson(path, document) };
}

/** Adds the name of the file to errors. */
async function inFile<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    throw new LocalError(error.code, `${path}: ${error.message} (the file is left as it is)`, { cause: error });
  }
}
