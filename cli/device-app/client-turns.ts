/**
 * Work that costs much and is asked for with little: each client has one piece of it done at a time, and its others wait. A client that
 * asks for much delays itself.
 */
export class ClientTurns {
  /** What a client asked for last: it settles when the next one may begin. */
  readonly #last = new Map<string, Promise<void>>();

  /** Does `work` when all that `client` has asked for before is done. @returns what it gives @throws what it throws */
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
