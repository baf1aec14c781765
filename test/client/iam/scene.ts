/** A device that answers every request below /iam with what the test says, and clients connected to it, in virtual time. */
import { type Connection, IamUtil } from '../../../client/node.ts';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import { type CoapMethod, type CoapReply, Router, textReply } from '../../../protocol/coap/index.ts';
import { Host } from '../../../transport/host/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import { ids, PasswordScene } from '../../device/password/scene.ts';

const PORT = 5592;
const patterns = [
  '/iam/pairing',
  '/iam/pairing/{mode}',
  '/iam/settings',
  '/iam/settings/{setting}',
  '/iam/device-info/{setting}',
  '/iam/roles',
  '/iam/me',
  '/iam/users',
  '/iam/users/{username}',
  '/iam/users/{username}/{setting}',
  '/iam/users/{username}/fingerprints/{fingerprint}',
  '/iam/notification-categories',
  '/p2p/password/{step}',
];

/** `GET /iam/me`. */
export type Line = string;

/** Answers in their order, the last one for good. A number is a status, of an error with the text "said so". */
export type Given = CoapReply | number | (CoapReply | number)[];

export class IamScene {
  readonly scene: PasswordScene;
  readonly connection: Connection;
  readonly iam: IamUtil;
  /** What was asked, with bodies decoded, oldest first. */
  readonly asked: [Line, unknown?][] = [];
  readonly #answers = new Map<Line, CoapReply[]>();

  static async make(answers: Readonly<Record<Line, Given>> = {}): Promise<IamScene> {
    const scene = await PasswordScene.make();
    const connection = scene.connection('strange', PORT);
    const made = new IamScene(scene, connection);
    for (const [line, given] of Object.entries(answers)) made.answers(line, given);
    await made.#listen();
    await scene.sim.settle(connection.connect());
    return made;
  }

  private constructor(scene: PasswordScene, connection: Connection) {
    this.scene = scene;
    this.connection = connection;
    this.iam = new IamUtil(connection);
  }

  /** From now on; lines without an answer are 4.04. */
  answers(line: Line, given: Given): void {
    this.#answers.set(line, (Array.isArray(given) ? given : [given]).map(reply));
  }

  /** What the promise resolves with, or the code of its error. */
  async outcome(promise: Promise<unknown>): Promise<unknown> {
    return this.scene.sim.settle(promise.catch((error: { code: string }) => error.code));
  }

  /** The error the promise rejects with. */
  async failure(promise: Promise<unknown>): Promise<Error & { code: string; status?: number }> {
    const failed = promise.then(
      () => Promise.reject(new Error('it did not fail')),
      (error) => error,
    );
    return this.scene.sim.settle(failed);
  }

  async #listen(): Promise<void> {
    const environment = this.scene.environment('strange');
    const router = new Router<Session>();
    for (const pattern of patterns) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE'] as const) router.on(method, pattern, (request) => this.#answer(request));
    }
    const responder = () => [`device:${ids.productId}.${ids.deviceId}`];
    const info = { ProductId: ids.productId, DeviceId: ids.deviceId };
    const config = { identity: environment.crypto.generateKey(), binds: [{ port: PORT }], responder, info, router };
    const host = await this.scene.sim.settle(Host.open(environment, config));
    this.scene.ends(() => host.close());
  }

  #answer({ method, path, payload }: { method: CoapMethod; path: string; payload: Uint8Array }): CoapReply {
    const line = `${method} ${path}`;
    this.asked.push(payload.length === 0 ? [line] : [line, decode(payload)]);
    const answers = this.#answers.get(line) ?? [];
    return (answers.length > 1 ? answers.shift() : answers[0]) ?? textReply(404, 'no route');
  }

  close(): Promise<void> {
    return this.scene.close();
  }
}

/** An answer with a record. */
export function cbor(status: number, value: CborValue): CoapReply {
  return { status, contentFormat: 60, payload: encode(value) };
}

export function user(username: string, fields: Readonly<Record<string, CborValue>> = {}): CborValue {
  return { Username: username, Fingerprints: [], NotificationCategories: [], ...fields };
}

function reply(given: CoapReply | number): CoapReply {
  if (typeof given !== 'number') return given;
  return given >= 400 ? textReply(given, 'said so') : { status: given };
}
