/** Turns refusals of the administration into errors of `svc admin`, with a remedy on the command line. */
import { InvalidArgumentError } from 'commander';
import { LocalError } from '../../protocol/errors/index.ts';
import { AdministrationError, type Refusal } from '../../server/administration/index.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { commandLine } from '../frame/shell-word.ts';

/**
 * Runs part of a command.
 * @param data ` --data …` of the commands that a message names, see `dataOption`
 * @throws UsageError, CommandError or LocalError instead of an AdministrationError, with the remedy in one line
 */
export async function refusing<T>(run: () => T | Promise<T>, data = ''): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw error instanceof AdministrationError ? commandError(error, data) : error;
  }
}

/** Makes a parser of an argument from a rule of the administration: a refused value is a usage error. */
export function argument<T>(rule: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return rule(text);
    } catch (error) {
      throw error instanceof AdministrationError ? new InvalidArgumentError(sentence(error.message)) : error;
    }
  };
}

function commandError({ code, message, refusal }: AdministrationError, data: string): Error {
  switch (refusal.kind) {
    case 'invalid':
      return new UsageError(message);
    case 'cleartext-url':
      return new UsageError(`${message}: use https, or --allow-private for a service of your own network`);
    case 'private-address':
      return new UsageError(`${message}: add --allow-private to allow that`);
    case 'not-found':
      return new CommandError(`${message}: see ${listOf(refusal)}${data}`);
    case 'not-empty':
      return new CommandError(`${message}: add --force to remove them too`);
    case 'several-organizations':
      return new LocalError(code, `${message}: name one with --org`);
    case 'several-products':
      return new CommandError(
        `${message}: name one, as in ${commandLine('svc admin device invite', refusal.productIds.slice(0, 1), data)}`,
      );
    case 'has-key':
      return new CommandError(`${message}: choose another id, or ${removal(refusal, data)}`);
    case 'used':
      return new CommandError(`${message}; ${removal(refusal, data)} removes it`);
    case 'too-many':
      return new CommandError(`${message}: revoke some, see svc admin device invite list${data}`);
  }
}

function removal({ productId, deviceId }: { readonly productId: string; readonly deviceId: string }, data: string): string {
  return commandLine('svc admin device remove', [productId, deviceId], data);
}

/** The command that lists these records. */
function listOf({ record, id }: Extract<Refusal, { kind: 'not-found' }>): string {
  switch (record) {
    case 'organization':
      return 'svc admin org list';
    case 'server key':
      return 'svc admin key list';
    case 'API key':
      return 'svc admin apikey list';
    case 'invitation':
      return 'svc admin device invite list';
    case 'push credential':
      return 'svc admin push-credential list';
    case 'attachment of a service':
      return `svc admin service show ${id}`;
    case 'product':
    case 'device':
    case 'service':
      return `svc admin ${record} list`;
  }
}

function sentence(clause: string): string {
  return `${clause[0]?.toUpperCase()}${clause.slice(1)}.`;
}
