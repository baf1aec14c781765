#!/usr/bin/env node
/** Starts `svc` with the arguments of this process. */
import { keepYoungGenerationSmall } from './frame/young-generation.ts';

// What is loaded makes it grow, so this comes before.
keepYoungGenerationSmall();
const { runProgram } = await import('./frame/program.ts');
const { svc } = await import('./program.ts');

// Whoever reads our output may stop reading: `svc … | head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const argv = process.argv.slice(2);
process.exitCode = await runProgram(await svc(argv), argv);
