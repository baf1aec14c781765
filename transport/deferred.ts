/** A promise with its two ends in hand (Promise.withResolvers is newer than ES2023). */
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

  /** The same, for one whose rejection may find nobody waiting: not an unhandled rejection then. */
  static quiet<T>(): Deferred<T> {
    const deferred = new Deferred<T>();
    deferred.promise.catch(() => {});
    return deferred;
  }
}
