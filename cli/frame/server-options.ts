/** How printed commands name a base station. */
import { shellWord } from './shell-word.ts';

/** What the file of root certificates is called in printed commands. */
const ROOTS_FILE = 'roots.pem';

/** Which file a printed command means; a line for below it, none where no roots are kept. @param roots as of {@link NamedStation} */
export function rootsNote(roots: string | undefined): string[] {
  return roots ? [`(${ROOTS_FILE} is a copy of the file that --root-certs was given)`] : [];
}

/** What is known of a base station. */
export interface NamedStation {
  readonly url: string;
  /** Undefined: TLS proves it. */
  readonly fingerprint: string | undefined;
  /** PEM; undefined or empty: the roots of Node. */
  readonly roots: string | undefined;
  /** URL of the WebSocket to it; undefined: what follows from its own. */
  readonly webSocket: string | undefined;
}

/** The options by which a client finds and proves a base station. */
export function serverOptions({ url, fingerprint, roots, webSocket }: NamedStation): string {
  const byRoots = roots ? ` --root-certs ${ROOTS_FILE}` : '';
  const proof = fingerprint === undefined ? byRoots : ` --server-fingerprint ${fingerprint}`;
  return `--server ${url}${proof}${webSocket === undefined ? '' : ` --server-websocket ${shellWord(webSocket)}`}`;
}
