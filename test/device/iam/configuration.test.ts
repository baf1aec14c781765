/**
 * The configuration as JSON: a written document is read back equal, and an invalid one is refused with the place of the
 * error.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { configurationDocument, defaultConfiguration, readConfiguration } from '../../../device/iam/index.ts';
import { configurations } from './policies.ts';

const statement = { Effect: 'Allow', Actions: ['A'] };
const withPolicy = (Statements: unknown) => ({ Version: 1, Policies: [{ Id: 'p', Statements }], Roles: [], Config: {} });
const withCondition = (condition: unknown) => withPolicy([statement, { ...statement, Conditions: [condition] }]);

describe('the configuration document', () => {
  it('is read back as it was written', { tags: ['slow'] }, () => {
    fc.assert(
      fc.property(configurations, (configuration) => {
        const text = JSON.stringify(configurationDocument(configuration));
        expect(readConfiguration(JSON.parse(text))).toEqual(configuration);
      }),
      { numRuns: 200, seed: 1 },
    );
  });

  it('has the form that docs/iam.md gives', () => {
    const document = JSON.parse(JSON.stringify(configurationDocument(defaultConfiguration())));
    expect(Object.keys(document)).toEqual(['Version', 'Policies', 'Roles', 'Config']);
    expect(document.Version).toBe(1);
    expect(document.Config).toEqual({ UnpairedRole: 'Unpaired' });
    expect(document.Roles[0]).toEqual({ Id: 'Unpaired', Policies: ['Pairing'] });
    expect(document.Policies[3].Statements[0].Conditions).toEqual([
      { StringEquals: { 'IAM:Username': [expect.stringMatching(/^\$\{Connection:Username\}$/)] } },
    ]);
  });

  const refused: [name: string, document: unknown, message: string][] = [
    ['no object', [], 'must be an object'],
    ['no version', { Policies: [], Roles: [], Config: {} }, '"Version" is missing'],
    ['another version', { Version: 2, Foo: 1 }, 'Version: is 2, and only version 1 can be read'],
    ['a version that is text', { Version: '1' }, 'Version: must be a whole number'],
    ['no policies', { Version: 1, Roles: [], Config: {} }, '"Policies" is missing'],
    ['no roles', { Version: 1, Policies: [], Config: {} }, '"Roles" is missing'],
    ['no config', { Version: 1, Policies: [], Roles: [] }, '"Config" is missing'],
    ['an unknown member', { Version: 1, Policies: [], Roles: [], Config: {}, Users: [] }, 'unknown member "Users"'],
    [
      'a condition under a wrong name',
      withPolicy([{ ...statement, Condition: [] }]),
      'Policies[0].Statements[0]: unknown member "Condition"',
    ],
    ['another effect', withPolicy([{ ...statement, Effect: 'allow' }]), 'Policies[0].Statements[0].Effect: must be "Allow" or "Deny"'],
    ['actions that are one text', withPolicy([{ ...statement, Actions: 'A' }]), 'Policies[0].Statements[0].Actions: must be an array'],
    [
      'an action that is no text',
      withPolicy([{ ...statement, Actions: ['A', 1] }]),
      'Policies[0].Statements[0].Actions[1]: must be a text',
    ],
    [
      'an unknown operator',
      withCondition({ StringLike: { x: ['1'] } }),
      'Policies[0].Statements[1].Conditions[0]: unknown operator "StringLike"',
    ],
    [
      'an operator of every object',
      withCondition({ toString: { x: ['1'] } }),
      'Policies[0].Statements[1].Conditions[0]: unknown operator "toString"',
    ],
    [
      'two operators',
      withCondition({ StringEquals: { x: ['1'] }, Bool: { x: ['true'] } }),
      'Policies[0].Statements[1].Conditions[0]: must have exactly one operator',
    ],
    [
      'two attributes',
      withCondition({ StringEquals: { x: ['1'], y: ['1'] } }),
      'Policies[0].Statements[1].Conditions[0].StringEquals: must name exactly one attribute',
    ],
    ['values that are no array', withCondition({ Bool: { x: true } }), 'Policies[0].Statements[1].Conditions[0].Bool.x: must be an array'],
    [
      'a value that is no text',
      withCondition({ Bool: { x: [true] } }),
      'Policies[0].Statements[1].Conditions[0].Bool.x[0]: must be a text',
    ],
    ['an empty id', { Version: 1, Policies: [{ Id: '', Statements: [] }], Roles: [], Config: {} }, 'Policies[0].Id: is empty'],
    [
      'a policy id twice',
      { Version: 1, Policies: [1, 2].map(() => ({ Id: 'p', Statements: [] })), Roles: [], Config: {} },
      'Policies[1].Id: "p" is used twice',
    ],
    [
      'a role id twice',
      { Version: 1, Policies: [], Roles: [1, 2].map(() => ({ Id: 'r', Policies: [] })), Config: {} },
      'Roles[1].Id: "r" is used twice',
    ],
    [
      'an UnpairedRole that does not exist',
      { Version: 1, Policies: [], Roles: [{ Id: 'r', Policies: [] }], Config: { UnpairedRole: 's' } },
      'Config.UnpairedRole: there is no role "s"',
    ],
  ];
  for (const [name, document, message] of refused) {
    it(`refuses ${name}`, () => {
      expect(() => readConfiguration(document)).toThrow(expect.objectContaining({ code: 'PARSE', message }));
    });
  }

  it('lets a role name a policy that does not exist, which denies', () => {
    const document = { Version: 1, Policies: [], Roles: [{ Id: 'r', Policies: ['gone'] }], Config: { UnpairedRole: 'r' } };
    expect(readConfiguration(document)).toEqual({ policies: [], roles: [{ id: 'r', policies: ['gone'] }], unpairedRole: 'r' });
  });
});
