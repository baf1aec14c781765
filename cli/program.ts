/** The command `svc`: its subcommands, each from a file of its own, put together. */
import { Command } from 'commander';
import { VERSION } from '../protocol/records/index.ts';
import { adminCommand } from './admin/index.ts';
import { basestationCommand } from './basestation.ts';
import { coapCommand } from './coap.ts';
import { connectCommand } from './connect.ts';
import { deviceCommand } from './device.ts';
import { keyCommand } from './key.ts';
import { streamCommand } from './stream.ts';
import { tunnelCommand } from './tunnel.ts';

export function svc(): Command {
  return new Command('svc')
    .description('Reach a device: end-to-end encrypted connections by product id and device id, through a base station or directly.')
    .version(VERSION, '-V, --version')
    .addCommand(basestationCommand())
    .addCommand(adminCommand())
    .addCommand(deviceCommand())
    .addCommand(connectCommand())
    .addCommand(coapCommand())
    .addCommand(streamCommand())
    .addCommand(tunnelCommand())
    .addCommand(keyCommand());
}
