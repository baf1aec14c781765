/**
 * The hint of a base station without devices at its start: how the first device joins. At a terminal it creates an
 * invitation, and revokes that of an earlier start, which may never have been read; elsewhere, where its output is
 * stored, it names the command that creates one.
 */
import { type Administration, type LastStart, revokeInvitationsOf } from '../server/administration/index.ts';
import { handInvitation, JOIN_COMMAND } from './admin/invitation.ts';
import { administer } from './admin/shared.ts';
import { minuteOf } from './frame/duration.ts';
import type { Output } from './frame/output.ts';
import { commandLine, dataOption } from './frame/shell-word.ts';

/** Creator of these in the list of invitations. */
const MAKER = 'svc basestation';

/** Prints the hint. @param isTerminal whether a person watches standard output */
export function sayHowToJoin(output: Output, data: string, start: LastStart, isTerminal: boolean): Promise<void> {
  return administer({ data }, async (administration) => {
    const { store } = administration;
    if ((await store.devices()).length > 0) return;
    const products = await store.products();
    if (isTerminal && products.length <= 1) return show(output, administration, start);
    const [product] = products.length > 1 ? products : [];
    const operands = product === undefined ? [] : [product.productId];
    const invite = commandLine('svc admin device invite', operands, dataOption('basestation', data));
    output.result(null, `no devices yet; this prints a join string for one:  ${invite}`);
  });
}

async function show(output: Output, administration: Administration, start: LastStart): Promise<void> {
  const revoked = await revokeInvitationsOf(administration, MAKER);
  const { invitation, addressNote } = await handInvitation(administration, start, { maker: MAKER });
  output.result(null, [
    '',
    `for your first device, until ${minuteOf(invitation.expires)}: run  ${JOIN_COMMAND}  on it and paste`,
    '',
    invitation.joinString,
    '',
    ...(revoked > 0 ? ['It replaces the one shown by an earlier start, which is no longer valid.'] : []),
    ...(addressNote === undefined ? [] : [addressNote]),
  ]);
}
