/** `svc dev`: development tools besides a device and a base station. */
import { Command } from 'commander';
import { pushProviderCommand } from './push-provider.ts';

export function devCommand(): Command {
  return new Command('dev').description('helpers for development').addCommand(pushProviderCommand());
}
