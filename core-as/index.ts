/** Exports of the core. Every name here is part of the ABI that `bindings/` calls. */
export { abortColumn, abortLine } from './abort';
export * from './aead/one-shot';
export * from './exports/connection';
export * from './exports/module';
export * from './exports/paths';
export * from './exports/streams';
export * from './hash/one-shot';
