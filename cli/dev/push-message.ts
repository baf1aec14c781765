/** The shape of a `messages:send` document, checked as the provider does: unknown fields are errors too. */
import { invalidField, type ProviderAnswer } from './push-errors.ts';

/** The message of a valid document. */
export interface PushMessage {
  readonly target: { readonly kind: 'token' | 'topic' | 'condition'; readonly value: string };
  readonly fields: Readonly<Record<string, unknown>>;
}

type Fields = Readonly<Record<string, unknown>>;
const TARGETS = ['token', 'topic', 'condition'] as const;
const OBJECTS = ['android', 'apns', 'webpush', 'fcm_options', 'fcmOptions'];
/** Bytes of a message's payload, as the provider documents it. */
const MAX_DATA = 4096;
/** Levels of objects and lists that protobuf's JSON parsers accept. */
const MAX_DEPTH = 100;

class Invalid extends Error {
  readonly answer: ProviderAnswer;

  constructor(field: string, description: string) {
    super(description);
    this.answer = invalidField(field, description);
  }
}

/** The message, or the provider's 400. */
export function checkMessage(body: string): PushMessage | { readonly refused: ProviderAnswer } {
  try {
    return messageOf(body);
  } catch (error) {
    if (error instanceof Invalid) return { refused: error.answer };
    throw error;
  }
}

function messageOf(body: string): PushMessage {
  const json = parsed(body);
  if (isDeep(json)) throw new Invalid('', 'Invalid JSON payload received. Message too deep.');
  const document = object(json, '');
  only(document, ['message', 'validate_only', 'validateOnly'], '');
  const message = object(document.message, 'message');
  only(message, [...TARGETS, ...OBJECTS, 'name', 'notification', 'data'], 'message');
  for (const name of OBJECTS) if (message[name] !== undefined) object(message[name], `message.${name}`);
  if (message.notification !== undefined) texts(message.notification, 'message.notification', ['title', 'body', 'image']);
  if (message.data !== undefined) data(message.data);
  const [kind, ...more] = TARGETS.filter((each) => message[each] !== undefined);
  if (kind === undefined || more.length > 0) throw new Invalid('message', 'Exactly one of token, topic and condition is required');
  const value = message[kind];
  if (typeof value !== 'string' || value === '') throw new Invalid(`message.${kind}`, `The ${kind} is not a text`);
  return { target: { kind, value }, fields: message };
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new Invalid('', 'Invalid JSON payload received.');
  }
}

/** Checks the depth level by level: recursion would overflow the stack. */
function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth <= MAX_DEPTH; depth++) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}

function object(value: unknown, field: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new Invalid(field, `Invalid value at '${field}': an object is expected`);
}

function only(fields: Fields, names: readonly string[], path: string): void {
  const unknown = Object.keys(fields).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new Invalid(path, `Invalid JSON payload received. Unknown name "${unknown}" at '${path}': Cannot find field.`);
}

function texts(value: unknown, path: string, names?: readonly string[]): void {
  const fields = object(value, path);
  if (names !== undefined) only(fields, names, path);
  const wrong = Object.keys(fields).find((name) => typeof fields[name] !== 'string');
  if (wrong !== undefined) throw new Invalid(`${path}.${wrong}`, `Invalid value at '${path}.${wrong}' (TYPE_STRING)`);
}

function data(value: unknown): void {
  texts(value, 'message.data');
  const size = Object.entries(value as Record<string, string>).reduce((sum, [name, text]) => sum + Buffer.byteLength(name + text), 0);
  if (size > MAX_DATA) throw new Invalid('message.data', 'Android message is too big');
}
