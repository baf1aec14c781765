/** Answer of `POST /iam/users/:username/push-test`: what the provider said, in the form in which the base station hands it on (reference §1.4). */
export { decodePushAnswer, encodePushAnswer, type PushAnswer } from '../control/relayed.ts';
