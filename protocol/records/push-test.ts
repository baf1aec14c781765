/**
 * Answer of `POST /iam/users/:username/push-test`: the provider's response, in the form in which the base station
 * passes it on (docs/iam.md).
 */
export { decodePushAnswer, encodePushAnswer, type PushAnswer } from '../control/relayed.ts';
