/** The kinds of NAT, shared with the bench of direct paths. */
export * from '../../bench/nat/kinds.ts';
