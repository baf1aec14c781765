/**
 * Decides whether a role may perform an action (docs/iam.md), and explains why.
 *
 * The result starts as no match. Statements are evaluated in the order of the role's policies; Allow sets allow, Deny
 * or an error is final. Only a final Allow permits. A role's statements are sorted by action once per configuration, so
 * that a decision evaluates only those that name the action.
 */
import { type CompiledCondition, compileCondition, type Lookup } from './conditions.ts';
import type { Effect, IamConfiguration, Policy, Role, Statement } from './policy.ts';

/** The reason for a decision. All but `allow` deny. */
export type DecisionReason =
  /** A statement allows it and none denies it. */
  | 'allow'
  /** A statement denies it. */
  | 'deny'
  /** A condition compares a value that is not a number or boolean. */
  | 'unparsable-value'
  /** The role names a policy that does not exist. */
  | 'missing-policy'
  /** No statement of the role applies, or none whose conditions match. */
  | 'no-match'
  /** The user has no role, or the configuration has none for unpaired clients. */
  | 'no-role'
  /** The configuration has no role of that id. */
  | 'unknown-role';

/** A verdict with its reason. */
export interface Decision extends Outcome {
  readonly allowed: boolean;
  readonly action: string;
  /** The role that decided. */
  readonly role?: string;
  /** All of it in one line for a person. */
  readonly text: string;
}

/** A role's decision and the statement that made it, without the text. */
interface Outcome {
  readonly reason: DecisionReason;
  /** The policy that decided, or the one that is missing. */
  readonly policy?: string;
  /** Index of the statement in that policy, from 0. */
  readonly statement?: number;
  readonly effect?: Effect;
}

interface CompiledStatement {
  readonly conditions: readonly CompiledCondition[];
  /** The outcome when all conditions match. */
  readonly matched: Outcome;
  /** The outcome when one cannot be evaluated. */
  readonly failed: Outcome;
}

/** The rules of a role's policies for one action. */
class ActionRules {
  readonly statements: CompiledStatement[] = [];
  /** The attributes that conditions refer to; the index is their slot. */
  readonly names: string[] = [];

  add({ effect, conditions }: Statement, policy: string, statement: number): void {
    const place = { policy, statement, effect };
    this.statements.push({
      conditions: conditions.map((condition) => compileCondition(condition, (name) => this.#slot(name))),
      matched: { reason: effect === 'Allow' ? 'allow' : 'deny', ...place },
      failed: { reason: 'unparsable-value', ...place },
    });
  }

  #slot(name: string): number {
    const known = this.names.indexOf(name);
    return known < 0 ? this.names.push(name) - 1 : known;
  }
}

interface CompiledRole {
  readonly byAction: ReadonlyMap<string, ActionRules>;
  /** The first policy that is missing: nothing after it is evaluated. */
  readonly missing?: Outcome;
}

const NO_MATCH: Outcome = { reason: 'no-match' };

/** The policies of a configuration, ready to decide. */
export class Evaluator {
  readonly #roles: ReadonlyMap<string, CompiledRole>;

  constructor({ policies, roles }: IamConfiguration) {
    const byId = new Map(policies.map((policy) => [policy.id, policy]));
    this.#roles = new Map(roles.map((role) => [role.id, compileRole(role, byId)]));
  }

  /** @param role id; without one everything is denied */
  allows(role: string | undefined, action: string, attributes: Lookup): boolean {
    return this.#outcome(role, action, attributes).reason === 'allow';
  }

  /** Returns the same verdict, with its reason. */
  explain(role: string | undefined, action: string, attributes: Lookup): Decision {
    const outcome = this.#outcome(role, action, attributes);
    const decision = { ...outcome, allowed: outcome.reason === 'allow', action, ...(role === undefined ? {} : { role }) };
    return { ...decision, text: sentence(decision) };
  }

  #outcome(role: string | undefined, action: string, attributes: Lookup): Outcome {
    if (role === undefined) return { reason: 'no-role' };
    const compiled = this.#roles.get(role);
    if (compiled === undefined) return { reason: 'unknown-role' };
    const rules = compiled.byAction.get(action);
    const outcome = rules === undefined ? NO_MATCH : decide(rules, attributes);
    return outcome === NO_MATCH || outcome.reason === 'allow' ? (compiled.missing ?? outcome) : outcome;
  }
}

function decide({ statements, names }: ActionRules, attributes: Lookup): Outcome {
  const values = names.map(attributes);
  let outcome = NO_MATCH;
  for (const statement of statements) {
    const result = evaluate(statement, values);
    if (result === NO_MATCH) continue;
    if (result.reason !== 'allow') return result;
    if (outcome === NO_MATCH) outcome = result;
  }
  return outcome;
}

function evaluate(statement: CompiledStatement, values: readonly (string | undefined)[]): Outcome {
  for (const condition of statement.conditions) {
    const match = condition(values);
    if (match === 'no-match') return NO_MATCH;
    if (match === 'error') return statement.failed;
  }
  return statement.matched;
}

function compileRole(role: Role, policies: ReadonlyMap<string, Policy>): CompiledRole {
  const byAction = new Map<string, ActionRules>();
  for (const id of role.policies) {
    const policy = policies.get(id);
    if (policy === undefined) return { byAction, missing: { reason: 'missing-policy', policy: id } };
    policy.statements.forEach((statement, index) => {
      for (const action of new Set(statement.actions)) rulesOf(byAction, action).add(statement, id, index);
    });
  }
  return { byAction };
}

function rulesOf(byAction: Map<string, ActionRules>, action: string): ActionRules {
  const rules = byAction.get(action) ?? new ActionRules();
  byAction.set(action, rules);
  return rules;
}

function sentence({ reason, action, role, policy, statement }: Omit<Decision, 'text' | 'allowed'>): string {
  const place = `statement ${statement} of policy "${policy}" of role "${role}"`;
  const sentences: Readonly<Record<DecisionReason, string>> = {
    allow: `${action} is allowed by ${place}`,
    deny: `${action} is denied by ${place}`,
    'unparsable-value': `${action} is denied: a condition of ${place} compares something that is not a number or boolean`,
    'missing-policy': `${action} is denied: role "${role}" names the policy "${policy}", which does not exist`,
    'no-match': `${action} is denied: no statement of role "${role}" allows it here`,
    'no-role': `${action} is denied: there is no role to decide by`,
    'unknown-role': `${action} is denied: there is no role "${role}"`,
  };
  return sentences[reason];
}
