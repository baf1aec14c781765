/** How printed commands name a base station. */

/** What the file of root certificates is called in printed commands. */
const ROOTS_FILE = 'roots.pem';

/** Which file a printed command means; a line for below it, none where no roots are kept. @param roots as for {@link serverOptions} */
export function rootsNote(roots: string | undefined): string[] {
  return roots ? [`(${ROOTS_FILE} is a copy of the file that --root-certs was given)`] : [];
}

/**
 * The options by which a client finds and proves a base station.
 * @param fingerprint undefined: TLS proves it
 * @param roots PEM; undefined or empty: the roots of Node
 */
export function serverOptions(url: string, fingerprint: string | undefined, roots: string | undefined): string {
  if (fingerprint !== undefined) return `--server ${url} --server-fingerprint ${fingerprint}`;
  return `--server ${url}${roots ? ` --root-certs ${ROOTS_FILE}` : ''}`;
}
