/**
 * The terms of access control (docs/iam.md): a user has a role, a role names policies, a policy is a list of
 * statements, a statement allows or denies actions under conditions. `evaluate.ts` decides by them, `configuration.ts`
 * parses them from JSON.
 */

/** The nine operators of a condition. */
export const operators = [
  'StringEquals',
  'StringNotEquals',
  'NumericEquals',
  'NumericNotEquals',
  'NumericLessThan',
  'NumericLessThanEquals',
  'NumericGreaterThan',
  'NumericGreaterThanEquals',
  'Bool',
] as const;

export type Operator = (typeof operators)[number];

/**
 * Compares the attribute with values, of which one must match. A value of the form `${Name}` stands for the attribute
 * of that name.
 */
export interface Condition {
  readonly operator: Operator;
  /** Name of the attribute, for example `IAM:Username`. */
  readonly key: string;
  readonly values: readonly string[];
}

export type Effect = 'Allow' | 'Deny';

/** Applies its effect to exactly the named actions, without wildcards, when all conditions match. */
export interface Statement {
  readonly effect: Effect;
  readonly actions: readonly string[];
  readonly conditions: readonly Condition[];
}

export interface Policy {
  readonly id: string;
  readonly statements: readonly Statement[];
}

/** A role that names a policy which does not exist denies everything. */
export interface Role {
  readonly id: string;
  /** Ids of policies, in the order they are evaluated. */
  readonly policies: readonly string[];
}

/** Access rules set by the application's developer; users and settings are the state (`state.ts`). */
export interface IamConfiguration {
  readonly policies: readonly Policy[];
  readonly roles: readonly Role[];
  /** Role of unpaired clients; without it they are denied everything. */
  readonly unpairedRole?: string;
}

/** Attributes of a request: name → value, for example `TcpTunnel:ServiceId`. */
export type Attributes = Readonly<Record<string, string>>;
