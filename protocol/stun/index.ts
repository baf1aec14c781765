/** STUN (RFC 8489) without IO: keyed checks between two ends, and plain Binding with a base station. */
export { answerPort, encodeBinding, encodeBindingAnswer, encodeBindingToPort, MIN_RESPONSE_PORT, readBindingAnswer } from './binding.ts';
export {
  CHECK_KEY_LENGTH,
  CHECK_LENGTH,
  CHECK_TAG_LENGTH,
  encodeCheck,
  encodeCheckAnswer,
  readCheckAnswer,
  tagOfCheck,
  transactionOfAnswer,
  verifyCheck,
} from './check.ts';
export { isStun, TRANSACTION_LENGTH } from './message.ts';
