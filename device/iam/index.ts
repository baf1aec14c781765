/** Access control of a device: users, roles, policies, pairing. */
export type { Caller, Denial } from './caller.ts';
export type { ChangeAuthor, IamChange, IamChangeListener, IamRecorder, StateSetting, UserSetting } from './changes.ts';
export { configurationDocument, readConfiguration } from './configuration.ts';
export { defaultConfiguration, demoState, type FirstState, productionState } from './defaults.ts';
export type { IamDraft } from './draft.ts';
export type { Decision, DecisionReason } from './evaluate.ts';
export { Iam, type IamOptions, type StoredPassword } from './iam.ts';
export { pairingFlags } from './pairing.ts';
export type * from './policy.ts';
export { defaultIamLimits, type IamLimits, Rules } from './rules.ts';
export { createIamSecrets } from './secrets.ts';
export type { IamSecrets, IamState, PairingFlags } from './state.ts';
export { type ReadStateOptions, readState, type StateDocument, stateDocument } from './state-document.ts';
export { CONFIGURATION_FILE, type IamStoreOptions, openIam, STATE_FILE } from './store.ts';
export { type PasswordVerifier, type UserEntry, Users } from './users.ts';
