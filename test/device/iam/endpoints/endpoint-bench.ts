/**
 * A device's IAM endpoints without a network: the real resources and router, connections that are only facts, and a
 * base station that only listens.
 */
import { CoapResources } from '../../../../device/coap-resources.ts';
import { Connections } from '../../../../device/connections.ts';
import { type DeviceFacade, installIamEndpoints } from '../../../../device/iam/endpoints/index.ts';
import {
  type Caller,
  defaultConfiguration,
  type Iam,
  type IamChange,
  type IamLimits,
  type IamState,
  stateDocument,
} from '../../../../device/iam/index.ts';
import type { Attributes } from '../../../../device/iam/policy.ts';
import type { Clock } from '../../../../platform/environment.ts';
import { type CborValue, decode, encode } from '../../../../protocol/cbor/index.ts';
import { type CoapMethod, type CoapReply, Exchanges, encodeMessage, MethodCode, parsePath } from '../../../../protocol/coap/index.ts';
import { LocalError } from '../../../../protocol/errors/index.ts';
import type { PushAnswer } from '../../../../protocol/records/index.ts';
import type { Session } from '../../../../runtime/session/index.ts';
import { next, option, requestOf, textOption } from '../../../protocol/coap/messages.ts';
import { noPaths } from '../../../support/no-paths.ts';
import { fakeSecrets, iamOf, key, stateOf, user } from '../model.ts';

/** All callers. Number 9 is a key that no user has. */
export const callers = {
  admin: { number: 1, isLocal: true },
  /** A guest. */
  ann: { number: 2, isLocal: false },
  /** A user whose role has no policies. */
  locked: { number: 3, isLocal: true },
  stranger: { number: 9, isLocal: true },
  remote: { number: 9, isLocal: false },
  /** Knows the password of open pairing. */
  opened: { number: 9, isLocal: false, password: '' },
  /** Knows the password of the invited user bob. */
  invited: { number: 9, isLocal: false, password: 'bob' },
  /** Authenticated as a user that is gone. */
  ghost: { number: 9, isLocal: false, password: 'ghost' },
  annAsAnn: { number: 2, isLocal: false, password: 'ann' },
  annAsBob: { number: 2, isLocal: false, password: 'bob' },
} as const satisfies Record<string, { number: number; isLocal: boolean; password?: string }>;

export type CallerName = keyof typeof callers;

export interface Body {
  readonly contentFormat?: number;
  readonly payload?: Uint8Array;
}

export interface Reply {
  readonly status: number;
  readonly contentFormat: number | undefined;
  /** Decoded CBOR, or text where there is no content format. */
  readonly body: unknown;
}

export interface EndpointBenchOptions {
  readonly state?: Partial<IamState>;
  /** Settings the state does not have. */
  readonly without?: readonly (keyof IamState)[];
  readonly limits?: Partial<IamLimits>;
  /** The disk is full, or as slow as the test wants. */
  readonly save?: 'fails' | (() => Promise<void>);
  /** The sealed password belongs to another device. */
  readonly unseal?: 'fails';
  readonly push?: (projectId: string, body: string) => Promise<PushAnswer>;
}

export const cbor = (value: CborValue): Body => ({ contentFormat: 60, payload: encode(value) });

const users = [
  user('admin', { role: 'Administrator', fingerprints: [{ fingerprint: key(1), name: 'phone' }], sct: 'sct-admin' }),
  user('ann', {
    role: 'Guest',
    displayName: 'Ann',
    fingerprints: [{ fingerprint: key(2) }, { fingerprint: key(22), name: 'tablet' }],
    sct: 'sct-ann',
    push: { token: 'token-ann', projectId: 'project' },
    notificationCategories: ['INFO'],
    oauthSubject: 'subject-ann',
  }),
  user('locked', { role: 'Locked', fingerprints: [{ fingerprint: key(3) }] }),
  { ...user('bob', { role: 'Guest' }), verifier: { kdf: 1 as const, salt: new Uint8Array(16), value: new Uint8Array(16) } },
  user('first', { role: 'Administrator' }),
];

/** Pairing is on in all ways unless a test says otherwise. */
const settings: Partial<IamState> = {
  localOpenPairing: true,
  passwordOpenPairing: true,
  passwordInvitePairing: true,
  localInitialPairing: true,
  openPairingPasswordSealed: 'sealed:open-password',
  openPairingSct: 'sct-open',
  openPairingRole: 'Guest',
  initialPairingUsername: 'first',
  friendlyName: 'Cellar',
};

/** Never waits. */
const CLOCK: Clock = { now: () => 0, wallTime: () => 0, schedule: () => () => {}, defer: (run) => run(), soon: (run) => run() };

export class EndpointBench {
  readonly iam: Iam;
  readonly pushes: { readonly projectId: string; readonly body: unknown }[] = [];
  readonly denied: { readonly caller: Caller; readonly action: string; readonly attributes: Attributes }[] = [];
  readonly changes: IamChange[] = [];
  /** Tokens for which the base station has no room. */
  readonly omitted = new Set<string>();
  /** ms from one request to the next. */
  pace = 60_000;
  #now = 0;
  /** Errors that the device logged: only failures of its own, never what a client sends. */
  readonly errors: unknown[] = [];
  readonly #resources: CoapResources;
  readonly #sessions = new Map<CallerName, Session>();

  constructor({
    state,
    without = [],
    limits,
    save,
    unseal,
    push = async () => ({ statusCode: 200, body: '{"name":"1"}' }),
  }: EndpointBenchOptions = {}) {
    const configuration = defaultConfiguration();
    const absent = new Set<string>(without);
    this.iam = iamOf({
      configuration: { ...configuration, roles: [...configuration.roles, { id: 'Locked', policies: [] }] },
      state: stateOf(users, Object.fromEntries(Object.entries({ ...settings, ...state }).filter(([name]) => !absent.has(name)))),
      secrets: unseal === 'fails' ? { ...fakeSecrets(), unseal: sealedElsewhere } : fakeSecrets(),
      notificationCategories: ['INFO', 'CRITICAL'],
      ...(limits === undefined ? {} : { limits }),
      ...(save === undefined ? {} : { save: save === 'fails' ? () => Promise.reject(new Error('the disk is full')) : save }),
    });
    this.iam.onChange((change) => this.changes.push(change));
    const log = { error: (...line: unknown[]) => void this.errors.push(line), warn() {}, info() {}, debug() {}, trace() {} };
    const connections = new Connections(log, { wallTime: () => 0 });
    this.#resources = new CoapResources(connections, log, CLOCK, { wouldAllow: async () => false });
    installIamEndpoints(this.#resources, this.iam, this.#facade(push));
    for (const name of Object.keys(callers) as CallerName[]) this.#sessions.set(name, this.#connect(connections, name));
  }

  /** All that a refused request must leave unchanged: what would be saved, and the rules. */
  get snapshot(): string {
    return JSON.stringify(stateDocument(this.iam.state));
  }

  /** @param line method and path: `GET /iam/me` */
  async request(caller: CallerName, line: string, { contentFormat, payload = new Uint8Array(0) }: Body = {}): Promise<Reply> {
    this.#now += this.pace;
    const [method, path] = line.split(' ') as [CoapMethod, string];
    const request = { exchange: 1, method, path, segments: parsePath(path), query: [], payload, observe: false };
    return show(
      await this.#resources.router.handle(
        { ...request, ...(contentFormat === undefined ? {} : { contentFormat }) },
        this.#sessions.get(caller)!,
      ),
    );
  }

  /** The same as the bytes of a message, with an extra option. */
  async message(caller: CallerName, line: string, body: Body, more: number): Promise<number> {
    this.#now += this.pace;
    const [method, path] = line.split(' ') as [CoapMethod, string];
    const server = new Exchanges({ randomToken: (length) => new Uint8Array(length) });
    const segments = parsePath(path).map((segment) => textOption(11, segment));
    const format = body.contentFormat === undefined ? [] : [option(12, body.contentFormat)];
    const options = [...segments, ...format, option(more, 1)].sort((a, b) => a.number - b.number);
    const { payload = new Uint8Array(0) } = body;
    server.receive(encodeMessage({ code: MethodCode[method], token: Uint8Array.of(1), options, payload }), 0);
    const event = server.nextEvent();
    if (event !== null) {
      const { exchange, request } = requestOf(event);
      server.responder.respond(exchange, await this.#resources.router.handle(request, this.#sessions.get(caller)!), 0);
    }
    const code = next(server)!.code;
    return (code >> 5) * 100 + (code & 31);
  }

  #facade(push: (projectId: string, body: string) => Promise<PushAnswer>): DeviceFacade {
    return {
      clock: { now: () => this.#now },
      lastUsed: () => undefined,
      isSctOmitted: (token) => this.omitted.has(token),
      details: () => ({ svcVersion: '1.2.3', appName: 'Heater', productId: 'pr-1', deviceId: 'de-1' }),
      caller: (connection) => ({
        fingerprint: connection.clientFingerprint,
        isLocal: connection.isLocal,
        ...(connection.isPasswordAuthenticated ? { passwordUsername: connection.passwordAuthenticationUsername } : {}),
      }),
      sendPush: (projectId, body) => {
        this.pushes.push({ projectId, body: JSON.parse(body) });
        return push(projectId, body);
      },
      denied: (caller, action, attributes) => this.denied.push({ caller, action, attributes }),
    };
  }

  #connect(connections: Connections, name: CallerName): Session {
    const { number, isLocal, password }: { number: number; isLocal: boolean; password?: string } = callers[name];
    const facts = {
      peer: { fingerprint: key(number), markVerified() {} },
      isOpen: true,
      paths: { isLocal, active: { address: `192.0.2.${number}` } },
      closed: new Promise(() => {}),
      on: () => () => {},
    };
    const session = facts as unknown as Session;
    const connection = connections.add(session, noPaths);
    if (password !== undefined) connection.setPasswordUsername(password);
    return session;
  }
}

function sealedElsewhere(): Promise<never> {
  return Promise.reject(new LocalError('INVALID_ARGUMENT', 'sealed by another device'));
}

function show({ status, contentFormat, payload = new Uint8Array(0) }: CoapReply): Reply {
  if (payload.length === 0) return { status, contentFormat, body: undefined };
  return { status, contentFormat, body: contentFormat === 60 ? decode(payload) : new TextDecoder().decode(payload) };
}
