/** A command that runs in this process, with what it prints. */
import type { Command } from 'commander';
import { vi } from 'vitest';
import { runProgram } from '../../cli/frame/program.ts';

/** @param words the arguments of `program` */
export async function captured(program: Command, words: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const printed = { out: '', err: '' };
  const capture = (name: 'out' | 'err') => (chunk: unknown) => {
    printed[name] += String(chunk);
    return true;
  };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation(capture('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(capture('err')),
  ];
  try {
    return { code: await runProgram(program, words), ...printed };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
