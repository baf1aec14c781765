#!/usr/bin/env node
/**
 * The command `svc`. Each subcommand lies in a file of its own; here they are only put together.
 */
import { Command } from 'commander';
import { SvcClient } from '../client/node.ts';
import { adminCommand } from './admin/index.ts';
import { basestationCommand } from './basestation.ts';
import { coapCommand } from './coap.ts';
import { connectCommand } from './connect.ts';
import { deviceCommand } from './device.ts';
import { runProgram } from './frame/program.ts';
import { keyCommand } from './key.ts';
import { streamCommand } from './stream.ts';
import { tunnelCommand } from './tunnel.ts';

function svc(): Command {
  return new Command('svc')
    .description('Reach a device: end-to-end encrypted connections by product id and device id, through a base station or directly.')
    .version(SvcClient.create().version(), '-V, --version')
    .addCommand(basestationCommand())
    .addCommand(adminCommand())
    .addCommand(deviceCommand())
    .addCommand(connectCommand())
    .addCommand(coapCommand())
    .addCommand(streamCommand())
    .addCommand(tunnelCommand())
    .addCommand(keyCommand());
}

// Whoever reads our output may stop reading: `svc … | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exitCode = await runProgram(svc(), process.argv.slice(2));
