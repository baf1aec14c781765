/**
 * Decisions by policies: against a naive evaluator, and each rule of docs/iam.md by name with the reason that `explain`
 * gives.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Evaluator } from '../../../device/iam/evaluate.ts';
import type { Condition, IamConfiguration, Operator, Statement } from '../../../device/iam/policy.ts';
import { configurations, naiveAllows, requests, variable } from './policies.ts';

const lookup = (attributes: Record<string, string>) => (name: string) => (Object.hasOwn(attributes, name) ? attributes[name] : undefined);
const allow = (...conditions: Condition[]): Statement => ({ effect: 'Allow', actions: ['A'], conditions });
const deny = (...conditions: Condition[]): Statement => ({ effect: 'Deny', actions: ['A'], conditions });
const when = (operator: Operator, key: string, ...values: string[]): Condition => ({ operator, key, values });

/** One role `role` with a policy `p0`, `p1`… for each list of statements. */
function role(...policies: Statement[][]): IamConfiguration {
  return {
    policies: policies.map((statements, index) => ({ id: `p${index}`, statements })),
    roles: [{ id: 'role', policies: policies.map((_, index) => `p${index}`) }],
  };
}

function explain(configuration: IamConfiguration, attributes: Record<string, string> = {}, roleId: string | undefined = 'role') {
  return new Evaluator(configuration).explain(roleId, 'A', lookup(attributes));
}

describe('policy evaluation', () => {
  it('decides as a naive evaluator that follows docs/iam.md word by word', { tags: ['slow'] }, () => {
    let allowed = 0;
    fc.assert(
      fc.property(configurations, fc.array(requests, { minLength: 20, maxLength: 20 }), (configuration, all) => {
        const evaluator = new Evaluator(configuration);
        for (const { role, action, attributes } of all) {
          const expected = naiveAllows(configuration, role, action, attributes);
          expect(evaluator.allows(role, action, lookup(attributes))).toBe(expected);
          expect(evaluator.explain(role, action, lookup(attributes)).allowed).toBe(expected);
          if (expected) allowed++;
        }
      }),
      { numRuns: 5_000, seed: Number(process.env.SVC_TEST_SEED ?? 1) },
    );
    expect(allowed).toBeGreaterThan(100);
  });

  it('names the statement that allows', () => {
    expect(explain(role([], [deny(when('Bool', 'x', 'true')), allow()]), { x: 'false' })).toEqual({
      allowed: true,
      reason: 'allow',
      action: 'A',
      role: 'role',
      policy: 'p1',
      statement: 1,
      effect: 'Allow',
      text: 'A is allowed by statement 1 of policy "p1" of role "role"',
    });
  });

  it('lets a later Deny of another policy win, and names it', () => {
    expect(explain(role([allow()], [deny()]))).toMatchObject({
      allowed: false,
      reason: 'deny',
      policy: 'p1',
      statement: 0,
      effect: 'Deny',
    });
  });

  it('denies an action that no statement names', () => {
    expect(explain(role([{ ...allow(), actions: ['A:B', 'a', '*'] }]))).toMatchObject({ allowed: false, reason: 'no-match' });
  });

  it('denies without a role, and with one that does not exist', () => {
    expect(new Evaluator(role([allow()])).explain(undefined, 'A', lookup({}))).toMatchObject({ allowed: false, reason: 'no-role' });
    expect(explain(role([allow()]), {}, 'other')).toMatchObject({ allowed: false, reason: 'unknown-role', role: 'other' });
  });

  it('denies everything to a role that names a missing policy', () => {
    const configuration = { ...role([allow()]), roles: [{ id: 'role', policies: ['p0', 'gone'] }] };
    expect(explain(configuration)).toMatchObject({ allowed: false, reason: 'missing-policy', policy: 'gone' });
    expect(new Evaluator(configuration).explain('role', 'B', lookup({})).reason).toBe('missing-policy');
  });

  it('treats an error as final, even beside an Allow', () => {
    const broken = allow(when('NumericLessThan', 'x', '5'));
    expect(explain(role([allow(), broken]), { x: 'warm' })).toMatchObject({ allowed: false, reason: 'unparsable-value', statement: 1 });
    expect(explain(role([broken, allow()]), { x: '' }).reason).toBe('unparsable-value');
    expect(explain(role([allow(when('Bool', 'x', 'yes'))]), { x: 'true' }).reason).toBe('unparsable-value');
  });

  const cases: [name: string, condition: Condition, attributes: Record<string, string>, matches: boolean][] = [
    ['a missing attribute does not match', when('StringNotEquals', 'x', '1'), {}, false],
    ['names of every object are no attributes', when('StringNotEquals', 'constructor', '1'), {}, false],
    ['any value may match', when('StringEquals', 'x', '1', '2'), { x: '2' }, true],
    ['no value matches nothing', when('StringEquals', 'x'), { x: '2' }, false],
    ['StringNotEquals with several values: differs from at least one', when('StringNotEquals', 'x', '1', '2'), { x: '1' }, true],
    ['NumericNotEquals with several values: differs from at least one', when('NumericNotEquals', 'x', '1', '2'), { x: '1' }, true],
    ['numbers are compared as numbers', when('NumericEquals', 'x', '1.0'), { x: '1' }, true],
    ['texts are compared as texts', when('StringEquals', 'x', '1.0'), { x: '1' }, false],
    ['NumericLessThan', when('NumericLessThan', 'x', '10'), { x: '9.5' }, true],
    ['NumericLessThanEquals', when('NumericLessThanEquals', 'x', '10'), { x: '10' }, true],
    ['NumericGreaterThan', when('NumericGreaterThan', 'x', '10'), { x: '10' }, false],
    ['NumericGreaterThanEquals', when('NumericGreaterThanEquals', 'x', '-1e1'), { x: '-10' }, true],
    ['Bool', when('Bool', 'x', 'false'), { x: 'false' }, true],
    ['a variable stands for its attribute', when('StringEquals', 'x', variable('y')), { x: 'me', y: 'me' }, true],
    ['a variable without a value matches nothing', when('StringNotEquals', 'x', variable('y')), { x: 'me' }, false],
    ['a variable without a value leaves the others', when('StringEquals', 'x', variable('y'), 'me'), { x: 'me' }, true],
    ['a variable inside a text is a text', when('StringEquals', 'x', `a${variable('y')}`), { x: 'ame', y: 'me' }, false],
  ];
  for (const [name, condition, attributes, matches] of cases) {
    it(name, () => {
      expect(explain(role([allow(condition)]), attributes).reason).toBe(matches ? 'allow' : 'no-match');
    });
  }
});
