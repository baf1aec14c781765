/** `await using` for our classes. */

/**
 * Gives a class `Symbol.asyncDispose` where the platform has that symbol: each supported Node, and browsers that know
 * `await using`.
 */
export function asyncDispose<T>(of: { readonly prototype: T }, dispose: (object: T) => Promise<void>): void {
  if (Symbol.asyncDispose === undefined) return;
  const value = function (this: T): Promise<void> {
    return dispose(this);
  };
  Object.defineProperty(of.prototype, Symbol.asyncDispose, { value, configurable: true, writable: true });
}
