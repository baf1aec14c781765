/**
 * A raw device that answers every request below /iam as the test says, and a client connected to it, in virtual time.
 */
import { type Connection, IamUtil } from '../../../client/node.ts';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import { type CoapMethod, type CoapReply, Router, textReply } from '../../../protocol/coap/index.ts';
import { loadExchange } from '../../../protocol/password/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { withCheapScrypt } from '../../support/cheap-scrypt.ts';
import { DEVICE_PORT, ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

const MACHINE = 'scripted';
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

/** Answers in their order, the last one repeatedly. A number is a status, of an error with the text "said so". */
export type Given = CoapReply | number | (CoapReply | number)[];

export class ScriptedDevice {
  readonly fixture = new ProductFixture({ link: { delay: 5 } });
  readonly connection: Connection;
  readonly iam: IamUtil;
  /** The requests, with bodies decoded, oldest first. */
  readonly asked: [Line, unknown?][] = [];
  readonly #answers = new Map<Line, CoapReply[]>();

  /** With a client connected to it. */
  static async make(answers: Readonly<Record<Line, Given>> = {}): Promise<ScriptedDevice> {
    // At the first login it would take real time, for which virtual time does not wait.
    await loadExchange();
    const made = new ScriptedDevice();
    for (const [line, given] of Object.entries(answers)) made.answers(line, given);
    await made.fixture.raw.device({ machine: MACHINE, router: made.#router() });
    await made.settle(made.connection.connect());
    return made;
  }

  private constructor() {
    const client = this.fixture.client(withCheapScrypt(this.fixture.host('client')));
    this.connection = this.fixture.directConnection(MACHINE, DEVICE_PORT, { ProductId: ids.productId, DeviceId: ids.deviceId }, client);
    this.iam = new IamUtil(this.connection);
  }

  /** Valid from now on; lines without an answer are 4.04. */
  answers(line: Line, given: Given): void {
    this.#answers.set(line, (Array.isArray(given) ? given : [given]).map(reply));
  }

  /** Returns what the promise resolves with, or the code of its error. */
  async outcome(promise: Promise<unknown>): Promise<unknown> {
    return this.settle(promise.catch((error: { code: string }) => error.code));
  }

  /** Returns the error that the promise rejects with. */
  async failure(promise: Promise<unknown>): Promise<Error & { code: string; status?: number }> {
    const failed = promise.then(
      () => Promise.reject(new Error('it did not fail')),
      (error) => error,
    );
    return this.settle(failed);
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return this.fixture.settle(promise);
  }

  #router(): Router<Session> {
    const router = new Router<Session>();
    for (const pattern of patterns) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE'] as const) router.on(method, pattern, (request) => this.#answer(request));
    }
    return router;
  }

  #answer({ method, path, payload }: { method: CoapMethod; path: string; payload: Uint8Array }): CoapReply {
    const line = `${method} ${path}`;
    this.asked.push(payload.length === 0 ? [line] : [line, decode(payload)]);
    const answers = this.#answers.get(line) ?? [];
    return (answers.length > 1 ? answers.shift() : answers[0]) ?? textReply(404, 'no route');
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
