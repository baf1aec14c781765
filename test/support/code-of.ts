/** The code of the error that a promise rejects with or a call throws; OK otherwise. */
export async function codeOf(run: () => unknown): Promise<string> {
  try {
    await run();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return 'OK';
}

/** The same of a call that returns no promise. */
export function thrownCode(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return 'OK';
}
