/**
 * The push provider's HTTP v1 interface on loopback: the token endpoint checks the assertion of the service account it
 * made, `messages:send` checks the access token and the document. For development and tests; nothing is delivered
 * anywhere.
 *
 * A registration token that begins with the name of an error, such as `UNREGISTERED` or `QUOTA_EXCEEDED:5` (Retry-After
 * 5), is answered with that error; `answerAlways` does so for any token.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, errors, exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import { PortInUseError } from '../../protocol/errors/index.ts';
import { notFound, type ProviderAnswer, type PushError, permissionDenied, pushError, pushErrors, unauthenticated } from './push-errors.ts';
import { checkMessage } from './push-message.ts';

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging';
const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const LOOPBACK = '127.0.0.1';
/** Seconds: longest lifetime of an assertion, lifetime of an access token, and tolerance between clocks. */
const ASSERTION_LIFETIME = 3600;
const TOKEN_LIFETIME = 3600;
const CLOCK_TOLERANCE = 300;
const BODY_LIMIT = 131_072;
/** Access tokens and messages kept; the oldest are dropped. */
const KEPT = 1_000;

/** An accepted message. */
export interface ReceivedPush {
  readonly name: string;
  readonly message: unknown;
  readonly idempotencyKey: string | null;
}

export interface PushEmulatorOptions {
  projectId: string;
  /** 0 = a free port. */
  port?: number;
  onReceived?: (push: ReceivedPush) => void;
  /** Unix ms; default the system's. */
  wallTime?: () => number;
}

/** A running emulator. Created by `start`. */
export class PushEmulator {
  /** Accepted messages, the newest last. */
  readonly received: ReceivedPush[] = [];
  /** Requests to the token endpoint and to `messages:send`. */
  readonly requests = { token: 0, send: 0 };
  readonly #options: PushEmulatorOptions;
  readonly #server: Server;
  readonly #keys: { publicKey: CryptoKey; pem: string; keyId: string };
  readonly #tokens = new Set<string>();
  #always: ProviderAnswer | null = null;

  /** @throws LocalError PORT_IN_USE, else the system's error when the port cannot be opened */
  static async start(options: PushEmulatorOptions): Promise<PushEmulator> {
    const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
    const keys = { publicKey, pem: await exportPKCS8(privateKey), keyId: randomBytes(20).toString('hex') };
    const emulator = new PushEmulator(options, keys);
    await new Promise<void>((resolve, reject) => {
      emulator.#server
        .once('error', (error) => reject(isPortTaken(error) ? new PortInUseError('TCP', options.port ?? 0, { cause: error }) : error))
        .listen(options.port ?? 0, LOOPBACK, resolve);
    });
    return emulator;
  }

  private constructor(options: PushEmulatorOptions, keys: { publicKey: CryptoKey; pem: string; keyId: string }) {
    this.#options = options;
    this.#keys = keys;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Origin: the base URL of a push credential. */
  get url(): string {
    return `http://${LOOPBACK}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The service account that this provider knows, as its JSON file. */
  get account() {
    const { projectId } = this.#options;
    return {
      type: 'service_account',
      project_id: projectId,
      private_key_id: this.#keys.keyId,
      private_key: this.#keys.pem,
      client_email: `push@${projectId}.iam.gserviceaccount.com`,
      token_uri: `${this.url}/token`,
    };
  }

  /** Sets the answer to every document; null: by its content. */
  answerAlways(answer: ProviderAnswer | null): void {
    this.#always = answer;
  }

  /** Invalidates all access tokens issued so far. */
  revokeTokens(): void {
    this.#tokens.clear();
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    if (body === null) return void response.destroy();
    const { status, headers, body: document } = await this.#answer(request, body);
    response.writeHead(status, { 'content-type': 'application/json; charset=UTF-8', ...headers });
    response.end(JSON.stringify(document, null, 2));
  }

  async #answer(request: IncomingMessage, body: string): Promise<ProviderAnswer> {
    const [path] = (request.url ?? '').split('?');
    if (request.method !== 'POST') return notFound();
    if (path === '/token') return this.#token(request, body);
    // Project ids here contain no character that needs escaping.
    const project = /^\/v1\/projects\/([\w.-]+)\/messages:send$/.exec(path ?? '')?.[1];
    return project === undefined ? notFound() : this.#send(project, request, body);
  }

  /** Answers a request for an access token (RFC 7523 §2.1; errors as in RFC 6749 §5.2). */
  async #token({ headers }: IncomingMessage, body: string): Promise<ProviderAnswer> {
    this.requests.token++;
    const form = new URLSearchParams(body);
    if (headers['content-type']?.split(';')[0] !== 'application/x-www-form-urlencoded')
      return oauthError('invalid_request', 'Bad content type');
    if (form.get('grant_type') !== GRANT_TYPE) return oauthError('unsupported_grant_type', `Invalid grant_type: ${form.get('grant_type')}`);
    const problem = await this.#assertionProblem(form.get('assertion') ?? '');
    if (problem !== null) return problem;
    const token = `ya29.${randomBytes(32).toString('base64url')}`;
    this.#tokens.add(token);
    const [oldest] = this.#tokens;
    if (this.#tokens.size > KEPT && oldest !== undefined) this.#tokens.delete(oldest);
    return { status: 200, body: { access_token: token, expires_in: TOKEN_LIFETIME, token_type: 'Bearer' } };
  }

  async #assertionProblem(assertion: string): Promise<ProviderAnswer | null> {
    const { client_email: issuer, token_uri: audience } = this.account;
    const now = this.#options.wallTime?.() ?? Date.now();
    try {
      const { payload, protectedHeader } = await jwtVerify(assertion, this.#keys.publicKey, {
        algorithms: ['RS256'],
        issuer,
        audience,
        currentDate: new Date(now),
        clockTolerance: CLOCK_TOLERANCE,
        requiredClaims: ['iat', 'exp', 'scope'],
        maxTokenAge: ASSERTION_LIFETIME,
      });
      if (protectedHeader.kid !== undefined && protectedHeader.kid !== this.#keys.keyId)
        return oauthError('invalid_grant', 'Invalid JWT Signature.');
      if (payload.exp! - payload.iat! > ASSERTION_LIFETIME)
        return oauthError('invalid_grant', 'Invalid JWT: Token must be a short-lived token');
      if (!String(payload.scope).split(' ').includes(SCOPE))
        return oauthError('invalid_scope', 'Invalid OAuth scope or ID token audience provided.');
      return null;
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      const signature = error instanceof errors.JWSSignatureVerificationFailed;
      return oauthError('invalid_grant', signature ? 'Invalid JWT Signature.' : `Invalid JWT: ${error.message}`);
    }
  }

  #send(project: string, { headers }: IncomingMessage, body: string): ProviderAnswer {
    this.requests.send++;
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1];
    if (token === undefined || !this.#tokens.has(token)) return unauthenticated();
    if (project !== this.#options.projectId) return permissionDenied(project);
    if (this.#always !== null) return this.#always;
    const checked = checkMessage(body);
    if ('refused' in checked) return checked.refused;
    const { target, fields } = checked;
    return (target.kind === 'token' ? errorOfToken(target.value) : null) ?? this.#take(project, fields, headers['idempotency-key']);
  }

  #take(project: string, message: unknown, idempotencyKey: string | string[] | undefined): ProviderAnswer {
    const name = `projects/${project}/messages/${randomBytes(8).toString('hex')}`;
    const push = { name, message, idempotencyKey: typeof idempotencyKey === 'string' ? idempotencyKey : null };
    this.received.push(push);
    if (this.received.length > KEPT) this.received.shift();
    this.#options.onReceived?.(push);
    return { status: 200, body: { name } };
  }
}

/** Returns the error that a registration token requests. */
function errorOfToken(token: string): ProviderAnswer | null {
  const [name, seconds] = token.split(':');
  const error = pushErrors.find((each): each is PushError => each === name);
  return error === undefined ? null : pushError(error, /^\d{1,4}$/.test(seconds ?? '') ? Number(seconds) : null);
}

function oauthError(error: string, description: string): ProviderAnswer {
  return { status: 400, body: { error, error_description: description } };
}

/** Returns the body; null when it is too long, or incomplete. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Uint8Array>) {
      length += chunk.length;
      if (length > BODY_LIMIT) return null;
      chunks.push(chunk);
    }
  } catch {
    return null;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function isPortTaken(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
}
