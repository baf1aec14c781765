/** Random policies, and a naive evaluator that follows docs/iam.md word by word, without preparation. */
import fc from 'fast-check';
import { type Condition, type IamConfiguration, operators, type Statement } from '../../../device/iam/policy.ts';

/** A value that refers to an attribute. */
export const variable = (name: string) => `\${${name}}`;

const actions = ['A', 'B', 'C'];
const attributes = ['x', 'y', 'Connection:IsLocal', 'Connection:Username', 'toString'];
const values = [
  '1',
  '2',
  '1.0',
  '-1e1',
  'true',
  'false',
  'word',
  '',
  ' 1',
  '0x1',
  variable('x'),
  variable('y'),
  variable('Connection:Username'),
  variable('none'),
  '${',
  `a${variable('x')}`,
];
const policyIds = ['p', 'q', 'r', 's'];

const condition: fc.Arbitrary<Condition> = fc.record({
  operator: fc.constantFrom(...operators),
  key: fc.constantFrom(...attributes),
  values: fc.array(fc.constantFrom(...values), { maxLength: 3 }),
});

const statement: fc.Arbitrary<Statement> = fc.record({
  effect: fc.constantFrom('Allow' as const, 'Deny' as const),
  actions: fc.array(fc.constantFrom(...actions), { maxLength: 3 }),
  conditions: fc.array(condition, { maxLength: 2 }),
});

/** Policies p, q and r; roles may also name s, which does not exist. */
export const configurations: fc.Arbitrary<IamConfiguration> = fc.record({
  policies: fc
    .tuple(...['p', 'q', 'r'].map((id) => fc.record({ id: fc.constant(id), statements: fc.array(statement, { maxLength: 4 }) })))
    .map((policies) => policies),
  roles: fc
    .tuple(
      ...['one', 'two'].map((id) =>
        fc.record({ id: fc.constant(id), policies: fc.array(fc.constantFrom(...policyIds), { maxLength: 4 }) }),
      ),
    )
    .map((roles) => roles),
});

export const requests = fc.record({
  role: fc.option(fc.constantFrom('one', 'two', 'none'), { nil: undefined }),
  action: fc.constantFrom(...actions, 'D'),
  attributes: fc.dictionary(fc.constantFrom(...attributes), fc.constantFrom(...values), { noNullPrototype: false }),
});

type Result = 'no-match' | 'allow' | 'deny' | 'error';

/** Returns whether the role may, by the letter of docs/iam.md. */
export function naiveAllows(
  configuration: IamConfiguration,
  roleId: string | undefined,
  action: string,
  given: Record<string, string>,
): boolean {
  const role = configuration.roles.find(({ id }) => id === roleId);
  if (role === undefined) return false;
  let result: Result = 'no-match';
  for (const policyId of role.policies) {
    const policy = configuration.policies.find(({ id }) => id === policyId);
    if (policy === undefined) return false;
    for (const each of policy.statements) {
      const effect = statementEffect(each, action, given);
      if (effect === 'deny' || effect === 'error') return false;
      if (effect === 'allow') result = 'allow';
    }
  }
  return result === 'allow';
}

function statementEffect({ effect, actions, conditions }: Statement, action: string, given: Record<string, string>): Result {
  if (!actions.includes(action)) return 'no-match';
  for (const each of conditions) {
    const matched = matches(each, given);
    if (matched === 'error') return 'error';
    if (!matched) return 'no-match';
  }
  return effect === 'Allow' ? 'allow' : 'deny';
}

function matches({ operator, key, values }: Condition, given: Record<string, string>): boolean | 'error' {
  if (!Object.keys(given).includes(key)) return false;
  for (const value of values) {
    let operand: string | undefined = value;
    if (value.startsWith('${') && value.endsWith('}')) operand = Object.entries(given).find(([name]) => name === value.slice(2, -1))?.[1];
    if (operand === undefined) continue;
    const matched = compare(operator, given[key] as string, operand);
    if (matched !== false) return matched;
  }
  return false;
}

function compare(operator: Condition['operator'], a: string, b: string): boolean | 'error' {
  if (operator === 'StringEquals') return a === b;
  if (operator === 'StringNotEquals') return a !== b;
  if (operator === 'Bool') return ['true', 'false'].includes(a) && ['true', 'false'].includes(b) ? a === b : 'error';
  const [x, y] = [number(a), number(b)];
  if (x === undefined || y === undefined) return 'error';
  if (operator === 'NumericEquals') return x === y;
  if (operator === 'NumericNotEquals') return x !== y;
  if (operator === 'NumericLessThan') return x < y;
  if (operator === 'NumericLessThanEquals') return x <= y;
  if (operator === 'NumericGreaterThan') return x > y;
  return x >= y;
}

/** Those of the texts above that are decimal numbers. */
function number(text: string): number | undefined {
  return { '1': 1, '2': 2, '1.0': 1, '-1e1': -10 }[text];
}
