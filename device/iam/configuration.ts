/**
 * The configuration as JSON, version 1 (docs/iam.md):
 *
 *     {Version: 1,
 *      Policies: [{Id, Statements: [{Effect, Actions: […], Conditions?: [{<Operator>: {<Key>: [<values>]}}]}]}],
 *      Roles: [{Id, Policies: […]}], Config: {UnpairedRole?}}
 *
 * A document of another shape is refused, with the place of the error. Unknown members are refused too: `Condition` for
 * `Conditions` would turn a restricted statement into an unrestricted one.
 */
import { LocalError } from '../../protocol/errors/index.ts';
import { JsonField } from './json-fields.ts';
import {
  type Condition,
  type Effect,
  type IamConfiguration,
  type Operator,
  operators,
  type Policy,
  type Role,
  type Statement,
} from './policy.ts';

const VERSION = 1;

/** Parses a configuration. @param document a parsed JSON value. @throws LocalError PARSE with the place of the error */
export function readConfiguration(document: unknown): IamConfiguration {
  const root = new JsonField(document);
  const version = root.required('Version');
  if (version.integer !== VERSION) version.reject(`is ${version.integer}, and only version ${VERSION} can be read`);
  root.only(['Version', 'Policies', 'Roles', 'Config']);
  const unpairedRole = root.required('Config').only(['UnpairedRole']).optional('UnpairedRole')?.text;
  const configuration = {
    policies: root.required('Policies').array.map(readPolicy),
    roles: root.required('Roles').array.map(readRole),
    ...(unpairedRole === undefined ? {} : { unpairedRole }),
  };
  root.check(() => checkConfiguration(configuration));
  return configuration;
}

/** Returns the document that `readConfiguration` accepts. */
export function configurationDocument({ policies, roles, unpairedRole }: IamConfiguration): unknown {
  return {
    Version: VERSION,
    Policies: policies.map(({ id, statements }) => ({ Id: id, Statements: statements.map(statementDocument) })),
    Roles: roles.map(({ id, policies }) => ({ Id: id, Policies: policies })),
    Config: { UnpairedRole: unpairedRole },
  };
}

/**
 * Checks rules beyond the shape: unique ids, and an UnpairedRole that exists. A role may name a policy that does not
 * exist; it denies everything.
 * @throws LocalError INVALID_ARGUMENT with the place
 */
export function checkConfiguration({ policies, roles, unpairedRole }: IamConfiguration): void {
  checkOnce('Policies', policies);
  checkOnce('Roles', roles);
  if (unpairedRole !== undefined && !roles.some(({ id }) => id === unpairedRole)) {
    throw new LocalError('INVALID_ARGUMENT', `Config.UnpairedRole: there is no role "${unpairedRole}"`);
  }
}

function checkOnce(list: string, entries: readonly { readonly id: string }[]): void {
  const seen = new Set<string>();
  entries.forEach(({ id }, index) => {
    if (seen.has(id)) throw new LocalError('INVALID_ARGUMENT', `${list}[${index}].Id: "${id}" is used twice`);
    seen.add(id);
  });
}

function readPolicy(field: JsonField): Policy {
  field.only(['Id', 'Statements']);
  return { id: readId(field), statements: field.required('Statements').array.map(readStatement) };
}

function readRole(field: JsonField): Role {
  field.only(['Id', 'Policies']);
  return { id: readId(field), policies: field.required('Policies').texts };
}

function readId(field: JsonField): string {
  const id = field.required('Id');
  return id.text === '' ? id.reject('is empty') : id.text;
}

function readStatement(field: JsonField): Statement {
  field.only(['Effect', 'Actions', 'Conditions']);
  return {
    effect: readEffect(field.required('Effect')),
    actions: field.required('Actions').texts,
    conditions: field.optional('Conditions')?.array.map(readCondition) ?? [],
  };
}

function readEffect(field: JsonField): Effect {
  const effect = field.text;
  return effect === 'Allow' || effect === 'Deny' ? effect : field.reject('must be "Allow" or "Deny"');
}

function readCondition(field: JsonField): Condition {
  const [operator, ...otherOperators] = field.names;
  if (operator === undefined || otherOperators.length > 0) return field.reject('must have exactly one operator');
  if (!isOperator(operator)) return field.reject(`unknown operator "${operator.slice(0, 64)}"`);
  const attribute = field.required(operator);
  const [key, ...otherKeys] = attribute.names;
  if (key === undefined || otherKeys.length > 0) return attribute.reject('must name exactly one attribute');
  return { operator, key, values: attribute.required(key).texts };
}

function isOperator(name: string): name is Operator {
  return operators.some((operator) => operator === name);
}

function statementDocument({ effect, actions, conditions }: Statement): unknown {
  const shown = conditions.map(({ operator, key, values }) => ({ [operator]: Object.fromEntries([[key, values]]) }));
  return { Effect: effect, Actions: actions, ...(shown.length === 0 ? {} : { Conditions: shown }) };
}
