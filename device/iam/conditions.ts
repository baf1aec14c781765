/**
 * Conditions of statements (docs/iam.md), compiled once per configuration.
 *
 * A missing attribute does not match, a variable without a value matches nothing, and a value that should be a number
 * or boolean but is not is an error. Values are tried in order; the first that matches or is in error decides.
 */
import type { Condition, Operator } from './policy.ts';

/** Returns `undefined` if there is no attribute of that name. */
export type Lookup = (name: string) => string | undefined;

export type Match = 'match' | 'no-match' | 'error';

/** A condition ready to be evaluated. @param values attributes by their slot */
export type CompiledCondition = (values: readonly (string | undefined)[]) => Match;

/** Compares the attribute with one value. */
type Comparison = (attribute: string, value: string) => Match;

const VARIABLE = /^\$\{([^{}]*)\}$/;
/** Decimal, as people write it: no hexadecimal, spaces or infinity. */
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

const comparisons: Readonly<Record<Operator, Comparison>> = {
  StringEquals: (attribute, value) => verdict(attribute === value),
  StringNotEquals: (attribute, value) => verdict(attribute !== value),
  NumericEquals: numeric((a, b) => a === b),
  NumericNotEquals: numeric((a, b) => a !== b),
  NumericLessThan: numeric((a, b) => a < b),
  NumericLessThanEquals: numeric((a, b) => a <= b),
  NumericGreaterThan: numeric((a, b) => a > b),
  NumericGreaterThanEquals: numeric((a, b) => a >= b),
  Bool: (attribute, value) => (isBoolean(attribute) && isBoolean(value) ? verdict(attribute === value) : 'error'),
};

/**
 * Compiles a condition.
 * @param slot returns the index of an attribute: one lookup serves all conditions of a decision
 */
export function compileCondition({ operator, key, values }: Condition, slot: (name: string) => number): CompiledCondition {
  const compare = comparisons[operator];
  const subject = slot(key);
  const operands = values.map((value) => {
    const variable = VARIABLE.exec(value)?.[1];
    return { value, variable: variable === undefined ? -1 : slot(variable) };
  });
  return (given) => {
    const attribute = given[subject];
    if (attribute === undefined) return 'no-match';
    for (const { value, variable } of operands) {
      const operand = variable < 0 ? value : given[variable];
      const result = operand === undefined ? 'no-match' : compare(attribute, operand);
      if (result !== 'no-match') return result;
    }
    return 'no-match';
  };
}

function numeric(holds: (a: number, b: number) => boolean): Comparison {
  return (attribute, value) => (NUMBER.test(attribute) && NUMBER.test(value) ? verdict(holds(Number(attribute), Number(value))) : 'error');
}

function isBoolean(text: string): boolean {
  return text === 'true' || text === 'false';
}

function verdict(holds: boolean): Match {
  return holds ? 'match' : 'no-match';
}
