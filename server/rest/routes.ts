/**
 * The routes of docs/rest.md: `GET /health` and the read of an API key. Each has a JSON Schema for request and answer;
 * fields that are not in the schema of an answer are not sent.
 */
import type { FastifyInstance } from 'fastify';
import { READ } from '../administration/rules.ts';
import type { ClientAddresses } from '../client-address.ts';
import type { ApiKey, Store } from '../storage/store.ts';
import { authenticate } from './authentication.ts';
import { errorSchema, RestError } from './errors.ts';

const text = { type: 'string' } as const;

/** The record of docs/rest.md. */
const apiKeySchema = {
  type: 'object',
  required: ['organizationId', 'apikeyId', 'name', 'enforceIpWhitelist', 'isAdmin', 'actions', 'ipWhiteList', 'created'],
  properties: {
    organizationId: text,
    apikeyId: text,
    name: text,
    enforceIpWhitelist: { type: 'boolean' },
    isAdmin: { type: 'boolean' },
    actions: { type: 'array', items: text },
    ipWhiteList: { type: 'array', items: { type: 'object', required: ['ip'], properties: { ip: text, name: text } } },
    created: text,
  },
} as const;

const healthSchema = {
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string', enum: ['ok', 'failed'] }, storage: { type: 'string', enum: ['failed'] } },
} as const;

/** Dependencies of the routes. */
export interface RoutesOptions {
  readonly store: Store;
  readonly storageFailed: () => boolean;
  readonly addresses: Pick<ClientAddresses, 'of'>;
}

/** Adds every route to the application. */
export function addRoutes(app: FastifyInstance, { store, storageFailed, addresses }: RoutesOptions): void {
  app.get('/health', { schema: { response: { 200: healthSchema, 503: healthSchema, '5xx': errorSchema } } }, async (_, reply) => {
    const answers =
      !storageFailed() &&
      (await store.ping().then(
        () => true,
        () => false,
      ));
    if (answers) return { status: 'ok' };
    reply.code(503);
    return { status: 'failed', storage: 'failed' };
  });

  app.get<{ Params: { organizationId: string; keyId: string } }>(
    '/v1/organizations/:organizationId/apikeys/:keyId',
    {
      schema: { params: idParameters('organizationId', 'keyId'), response: { 200: apiKeySchema, '4xx': errorSchema, '5xx': errorSchema } },
    },
    async (request) => {
      const caller = await authenticate(request, store, addresses);
      const { organizationId, keyId } = request.params;
      if (organizationId !== caller.organizationId) throw new RestError(403, 'forbidden', 'this API key belongs to another organization');
      admitReader(caller, keyId);
      const key = await store.apiKey(keyId);
      if (key?.organizationId !== organizationId) throw new RestError(404, 'invalid_request_error', 'there is no such API key');
      return key;
    },
  );
}

/**
 * Checks the caller's rights before the record is looked up: a key without rights cannot find out which other keys
 * exist.
 * @throws RestError 403
 */
function admitReader(caller: ApiKey, keyId: string): void {
  if (caller.apikeyId === keyId || caller.isAdmin || caller.actions.includes(READ)) return;
  throw new RestError(403, 'forbidden', `this API key may read only its own record: others need isAdmin or the action ${READ}`);
}

function idParameters(...names: string[]) {
  const id = { type: 'string', maxLength: 100 } as const;
  return { type: 'object', required: names, properties: Object.fromEntries(names.map((name) => [name, id])) };
}
