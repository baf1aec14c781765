/** Public surface of the bindings: the only code that touches the linear memory of the core. */
export { LocalError, RemoteError, SvcError } from './error.ts';
