/**
 * Runs costly work that clients can request cheaply: one piece at a time per client, while its other requests wait. A
 * client with many requests delays only itself.
 */
export class ClientTurns {
  /** The latest request of a client: settles when the next one may begin. */
  readonly #last = new Map<string, Promise<void>>();

  /** Runs `work` after all earlier requests of `client`. @returns its result @throws its error */
  run<T>(client: string, work: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(client) ?? Promise.resolve()).then(work);
    const done = result.then(
      () => {},
      () => {},
    );
    this.#last.set(client, done);
    void done.then(() => {
      if (this.#last.get(client) === done) this.#last.delete(client);
    });
    return result;
  }
}
