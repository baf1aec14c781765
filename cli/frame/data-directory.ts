/**
 * The default data directory of a base station and a device: data kept between runs, and not meant for another machine,
 * is state (XDG Base Directory Specification: `$XDG_STATE_HOME`, `~/.local/state` without it).
 */
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** The inputs that determine the directories. */
export interface UserPlace {
  /** Value of XDG_STATE_HOME; used only if it is an absolute path, as the specification says. */
  readonly stateHome: string | undefined;
  readonly home: string;
}

/** `<state>/svc/<party>`. */
export function defaultDataDirectory(party: 'basestation' | 'device', place: UserPlace = currentPlace()): string {
  const { stateHome, home } = place;
  const state = stateHome !== undefined && isAbsolute(stateHome) ? stateHome : join(home, '.local', 'state');
  return join(state, 'svc', party);
}

function currentPlace(): UserPlace {
  return { stateHome: process.env.XDG_STATE_HOME, home: homedir() };
}
