/** Exports of the test target: internals of the core, so that each part has unit tests of its own. */
export { abortColumn, abortLine } from "./abort";
export * from "./aead/one-shot";
export * from "./exports/module";
