/** The kinds of NAT, which the bench of direct paths has, too. */
export * from '../../bench/nat/kinds.ts';
