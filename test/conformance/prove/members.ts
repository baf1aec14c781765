/**
 * Wraps the declarations of a module: functions, members of classes and objects, constructors. What takes something
 * away calls `note` each time that it did.
 */
import type { Declaration } from './replace.ts';
import type { Place } from './sources.ts';

type Declarations = Readonly<Record<string, Declaration>>;
type Callable = (...args: unknown[]) => unknown;
type Class = abstract new (...args: unknown[]) => object;

/** Proxies whose text does not show that they are classes. */
const reboundClasses = new WeakSet<object>();

/** Runs instead of a call: `call` is the original call, with other arguments if given. */
export type Around = (call: (args?: readonly unknown[]) => unknown, args: readonly unknown[]) => unknown;

/**
 * Runs `instead` in place of each call of what the place names: a function, a constructor, a method or accessor of a
 * class (its own or inherited, static too) or of an object, or the read of a field that the constructor sets.
 */
export function around(declarations: Declarations, { name, member }: Place, instead: Around): void {
  const declared = declarations[name]?.get();
  if (member === undefined && isClass(declared)) rebind(declarations, name, (make, args) => instanceOr(instead(make, args)));
  else if (member === undefined) declarations[name]?.set?.(wrapped(declared as Callable, instead));
  else if (!isClass(declared)) wrapMember(declared as object, member, instead);
  else {
    const owner = ownerOf(declared, member);
    if (owner !== undefined) wrapMember(owner, member, instead);
    else rebind(declarations, name, (make) => wrapField(make(), member, instead));
  }
}

/** Replaces a class by one whose constructor is `construct`, for the classes that extend it, too. */
export function rebind(
  declarations: Declarations,
  name: string,
  construct: (make: (args?: readonly unknown[]) => object, args: unknown[]) => object,
): void {
  const original = declarations[name]?.get() as Class;
  const replaced = new Proxy(original, {
    construct: (target, args, newTarget) => construct((given = args) => Reflect.construct(target, given, newTarget), args),
  });
  reboundClasses.add(replaced);
  declarations[name]?.set?.(replaced);
  for (const { get } of Object.values(declarations)) {
    const heir = get();
    if (isClass(heir) && Object.getPrototypeOf(heir) === original) Object.setPrototypeOf(heir, replaced);
  }
}

function isClass(value: unknown): value is Class {
  return typeof value === 'function' && (reboundClasses.has(value) || /^class\b/.test(Function.prototype.toString.call(value)));
}

/** A constructor has to return an object, even an empty one. */
function instanceOr(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** The class, prototype or ancestor that has the member; undefined when a constructor sets it. */
function ownerOf(declared: Class, member: string): object | undefined {
  const owners: object[] = [];
  for (let each: object | null = declared; each !== null && each !== Function.prototype; each = Object.getPrototypeOf(each))
    owners.push(each);
  for (let each = declared.prototype; each !== null && each !== Object.prototype; each = Object.getPrototypeOf(each)) owners.push(each);
  return owners.find((owner) => Object.hasOwn(owner, member));
}

function wrapMember(owner: object, member: string, instead: Around): void {
  const descriptor = Object.getOwnPropertyDescriptor(owner, member);
  if (descriptor === undefined) throw new Error(`nothing has a member ${member}`);
  const { get, value } = descriptor;
  if (get !== undefined) Object.defineProperty(owner, member, { ...descriptor, get: wrapped(get as Callable, instead) });
  else if (typeof value === 'function') Object.defineProperty(owner, member, { ...descriptor, value: wrapped(value as Callable, instead) });
  else wrapField(owner, member, instead);
}

function wrapField(owner: object, member: string, instead: Around): object {
  const value: unknown = Reflect.get(owner, member);
  return Object.defineProperty(owner, member, { enumerable: true, configurable: true, get: () => instead(() => value, []) });
}

function wrapped(original: Callable, instead: Around): Callable {
  return function (this: unknown, ...args: unknown[]) {
    return instead((given = args) => original.apply(this, [...given]), args);
  };
}

/** The arguments with listeners that do not receive the event: of `on(event, listener)`, or of one for all events. */
export function withoutEvent(args: readonly unknown[], event: string, note: () => void): unknown[] {
  const isOfEvent = args[0] === event;
  return args.map((each) => (isOfEvent && typeof each === 'function' ? () => note() : silenced(each, event, note)));
}

/**
 * A listener that does not receive the event: a function, or an object with `onEvent`, which keeps its identity so that
 * it can be removed.
 */
export function silenced(listener: unknown, event: string, note: () => void): unknown {
  const deaf = (hear: Callable): Callable => wrapped(hear, (call, args) => (args.includes(event) ? note() : call()));
  if (typeof listener === 'function') return deaf(listener as Callable);
  if (isRecord(listener) && typeof listener.onEvent === 'function') listener.onEvent = deaf(listener.onEvent as Callable);
  return listener;
}

/**
 * The value without a member, in arrays and JSON texts too. A function does not see it in its arguments, and its result
 * does not contain it.
 */
export function loseMember(value: unknown, path: readonly string[], note: () => void): unknown {
  const lose = (each: unknown) => loseMember(each, path, note);
  if (typeof value === 'function') {
    return wrapped(value as Callable, (call, args) => {
      const result = call(args.map(lose));
      return result instanceof Promise ? result.then(lose) : lose(result);
    });
  }
  if (Array.isArray(value)) return value.map(lose);
  if (typeof value === 'string' && value.startsWith('{')) return JSON.stringify(lose(JSON.parse(value)));
  const [member = '', ...rest] = path;
  if (!isRecord(value) || !(member in value)) return value;
  const { [member]: lost, ...others } = value;
  if (rest.length > 0) return { ...others, [member]: loseMember(lost, rest, note) };
  note();
  return others;
}

/** Only objects without a class: others have private state, which a copy would lack. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value));
}

/**
 * Registers an endpoint unless it is that one: the call names method and path, or receives an application that
 * registers more than one.
 */
export function unregistered(call: () => unknown, args: readonly unknown[], endpoint: string, note: () => void): unknown {
  const [verb = '', path = ''] = endpoint.split(' ');
  const pattern = new RegExp(`^${path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace('\\*', '[^/]+')}$`);
  const [first, second] = args;
  if (typeof first === 'string') return first === verb && pattern.test(String(second)) ? note() : call();
  const application = first as Record<string, Callable>;
  const method = verb.toLowerCase();
  const register = application[method] as Callable;
  application[method] = wrapped(register, (add, given) => {
    if (!pattern.test(String(given[0]))) return add();
    note();
    return application;
  });
  try {
    return call();
  } finally {
    application[method] = register;
  }
}

/** Gives a constant another value: a member of an object, or all its members. */
export function changeConstant(owner: Record<string, unknown>, member: string | undefined): void {
  for (const name of member === undefined ? Object.keys(owner) : [member]) {
    const value = owner[name];
    owner[name] = typeof value === 'number' ? value + 10_000 : `not ${String(value)}`;
  }
}
