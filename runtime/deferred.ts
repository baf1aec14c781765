/** A promise that is settled from outside (Promise.withResolvers is newer than ES2023). */
export class Deferred<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (reason: unknown) => void;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** Returns a Deferred whose rejection is never reported as unhandled, even if nothing awaits it. */
  static quiet<T>(): Deferred<T> {
    const deferred = new Deferred<T>();
    deferred.promise.catch(() => {});
    return deferred;
  }
}
