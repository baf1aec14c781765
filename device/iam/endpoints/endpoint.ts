/**
 * An endpoint as data, and how it is served: its checks in order, then its answer; an error becomes a status and a
 * short text.
 *
 * The order is not uniform (docs/iam.md): reads, deletions and settings of the device check policies first. A request
 * with a body about a user checks the body first, so that a bad one is 4.00 for any sender. Pairing checks its flag
 * before policies. Whether the user exists is checked last.
 */
import { type CoapMethod, Status } from '../../../protocol/coap/index.ts';
import { LocalError, SvcError } from '../../../protocol/errors/index.ts';
import type { Rates } from '../../../protocol/rates.ts';
import { CONTENT_FORMAT_CBOR, type PairingMode } from '../../../protocol/records/index.ts';
import type { DeviceCoapRequest, DeviceCoapResponse } from '../../coap-resources.ts';
import type { Caller, Demand } from '../caller.ts';
import type { Iam } from '../iam.ts';
import type { Attributes } from '../policy.ts';
import type { DeviceFacade } from './device-facade.ts';
import type { PairingRates } from './pairing-rates.ts';
import type { PushTests } from './push-test.ts';

/** `action`: policies, else 4.03. `body`: content format, CBOR, types and lengths, else 4.00. */
export type Check = 'action' | 'body';

/** State that the endpoints of one device share. */
export interface IamService {
  readonly iam: Iam;
  readonly device: DeviceFacade;
  readonly pushTests: PushTests;
  readonly pairingRates: PairingRates;
  readonly changeRates: Rates;
}

/** A request on its way through the checks. */
export interface IamRequest<Body> extends IamService {
  readonly caller: Caller;
  /** Numeric address of the client. */
  readonly address: string;
  readonly parameters: Readonly<Record<string, string>>;
  /**
   * The demand that policies allowed; a change of the state checks it again. undefined before policies are checked,
   * where none are, and for pairing.
   */
  readonly demand: Demand | undefined;
  /** The decoded body; undefined before it is decoded, and without a body. */
  readonly body: Body;
}

export interface IamEndpoint<Body = unknown> {
  readonly method: CoapMethod;
  /** With `{name}` segments. */
  readonly path: string;
  /** The action that policies must allow; without one, every client may use the endpoint. */
  readonly action?: string;
  /** Pairing: policies are checked together with the mode's other conditions. */
  readonly pairing?: PairingMode;
  /** Attributes of the request for policies. */
  readonly attributes?: (request: IamRequest<Body>) => Attributes;
  readonly checks: readonly Check[];
  /** Decodes and checks the body. @throws RemoteError PARSE or LocalError INVALID_ARGUMENT (4.00), NOT_FOUND (4.04) */
  readonly read?: (request: DeviceCoapRequest, iam: Iam) => Body;
  /** Carries out the request. A payload of bytes is CBOR; a text is for people. */
  readonly answer: (request: IamRequest<Body>) => Answer | Promise<Answer>;
}

export type Answer = Omit<DeviceCoapResponse, 'contentFormat'>;

/** Erases the body's type, so that endpoints fit one table. */
export function endpoint<Body>(definition: IamEndpoint<Body>): IamEndpoint {
  return definition as unknown as IamEndpoint;
}

/** Returns the payload of a request that must have one. @throws LocalError INVALID_ARGUMENT without CBOR */
export function cborBody({ contentFormat, payload }: DeviceCoapRequest): Uint8Array {
  if (contentFormat === CONTENT_FORMAT_CBOR && payload.length > 0) return payload;
  throw new LocalError('INVALID_ARGUMENT', 'A CBOR body is needed, content format 60');
}

/** Answers a request. @throws errors that are the device's fault: the resource answers 5.00 and logs them */
export async function serve(definition: IamEndpoint, service: IamService, from: DeviceCoapRequest): Promise<DeviceCoapResponse> {
  const { iam, device } = service;
  const { connection, parameters } = from;
  const { remoteAddress: address } = connection;
  let request: IamRequest<unknown> = {
    ...service,
    caller: device.caller(connection),
    address,
    parameters,
    demand: undefined,
    body: undefined,
  };
  try {
    for (const check of definition.checks) {
      if (check === 'body') request = { ...request, body: definition.read?.(from, iam) };
      else request = { ...request, demand: authorize(definition, request) };
    }
    const wait = changesItself(definition, request) ? service.changeRates.take(parameters.username ?? '', service.device.clock.now()) : 0;
    if (wait > 0) return { status: Status.TOO_MANY_REQUESTS, payload: 'Too many changes', maxAge: wait };
    const answer = await definition.answer(request);
    return answer.payload instanceof Uint8Array ? { ...answer, contentFormat: CONTENT_FORMAT_CBOR } : answer;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (error.code === 'FORBIDDEN') device.denied?.(request.caller, actionOf(definition), definition.attributes?.(request) ?? {});
    return refusal(error);
  }
}

/** Whether the caller changes its own record. */
function changesItself({ method }: IamEndpoint, { iam, caller, parameters }: IamRequest<unknown>): boolean {
  return (
    (method === 'PUT' || method === 'DELETE') &&
    parameters.username !== undefined &&
    iam.resolveCaller(caller)?.username === parameters.username
  );
}

function authorize({ action, pairing, attributes }: IamEndpoint, request: IamRequest<unknown>): Demand | undefined {
  const { iam, caller } = request;
  if (pairing !== undefined) iam.requirePairing(pairing, caller);
  if (action === undefined) return undefined;
  const demand = { action, attributes: attributes?.(request) ?? {} };
  if (!iam.check(caller, action, demand.attributes)) throw new LocalError('FORBIDDEN', 'Access denied');
  return demand;
}

function actionOf({ action, pairing }: IamEndpoint): string {
  return action ?? `IAM:Pairing${pairing}`;
}

const statuses: ReadonlyMap<string, number> = new Map([
  ['PARSE', Status.BAD_REQUEST],
  ['INVALID_ARGUMENT', Status.BAD_REQUEST],
  ['UNAUTHORIZED', Status.UNAUTHORIZED],
  ['FORBIDDEN', Status.FORBIDDEN],
  ['NOT_FOUND', Status.NOT_FOUND],
  ['IN_USE', Status.CONFLICT],
  // A reached limit, or an invited user that was deleted, is answered 5.00.
  ['OUT_OF_MEMORY', Status.INTERNAL_SERVER_ERROR],
  ['INVALID_STATE', Status.INTERNAL_SERVER_ERROR],
  ['NOT_ATTACHED', Status.SERVICE_UNAVAILABLE],
  ['OPERATION_IN_PROGRESS', Status.SERVICE_UNAVAILABLE],
]);

function refusal(error: SvcError): DeviceCoapResponse {
  const status = statuses.get(error.code);
  if (status === undefined) throw error;
  // Does not reveal whose the name or key is.
  return { status, payload: status === Status.CONFLICT ? 'Already in use' : error.message };
}
