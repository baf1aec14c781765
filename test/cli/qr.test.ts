/** QR codes in a terminal, read back as modules. Here their form is checked; qr-photograph.test.ts decodes one. */
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { Output } from '../../cli/frame/output.ts';
import { share } from '../../cli/pairing-share.ts';
import { qrCode } from '../../cli/qr.ts';
import { encodePairingLink } from '../../protocol/records/index.ts';

const LINK = `svc://pair#~${'0123456789abcdef'.repeat(8)}`;
const QUIET = 4;
const FINDER = ['#######', '#.....#', '#.###.#', '#.###.#', '#.###.#', '#.....#', '#######'];

/** Returns the text between the sequences that set and end black on white. */
function uncoloured(line: string): string {
  const [begin, end] = ['\u001b[38;5;16;48;5;231m', '\u001b[0m'];
  expect([line.startsWith(begin), line.endsWith(end)]).toEqual([true, true]);
  return line.slice(begin.length, -end.length);
}

/** Rows of modules, `#` for dark, including the quiet zone. */
function modules(lines: readonly string[], drawnIsDark: boolean): string[] {
  return lines.flatMap((line) =>
    ['█▀', '█▄'].map((drawn) => [...line].map((cell) => (drawn.includes(cell) === drawnIsDark ? '#' : '.')).join('')),
  );
}

describe.each([
  ['with colours', true],
  ['without', false],
])('%s', (_, colours) => {
  const lines = qrCode(LINK, { colours });
  const plain = colours ? lines.map(uncoloured) : lines;
  const rows = modules(plain, colours);
  const size = (rows[0]?.length ?? 0) - 2 * QUIET;

  test('has the size of a version, and a quiet zone of four modules', () => {
    expect((size - 21) % 4).toBe(0);
    expect(rows.length).toBeGreaterThanOrEqual(size + 2 * QUIET);
    const border = rows.filter((_row, y) => y < QUIET || y >= QUIET + size);
    for (const row of border) expect(row).toMatch(/^\.+$/);
    for (const row of rows) expect(row).toMatch(/^\.{4}.+\.{4}$/);
  });

  test('has the three finders and the timing patterns', () => {
    const at = (x: number, y: number) => FINDER.map((_row, i) => rows[QUIET + y + i]?.slice(QUIET + x, QUIET + x + 7));
    expect([at(0, 0), at(size - 7, 0), at(0, size - 7)]).toEqual([FINDER, FINDER, FINDER]);
    expect(rows[QUIET + 6]?.slice(QUIET + 6, QUIET + size - 6)).toMatch(/^#(\.#)+$/);
  });
});

test('both forms show the same code, and another text another one', () => {
  const coloured = modules(qrCode(LINK, { colours: true }).map(uncoloured), true);
  expect(modules(qrCode(LINK), false)).toEqual(coloured);
  expect(qrCode(`${LINK}x`)).not.toEqual(qrCode(LINK));
});

test('the longest link is drawn, and a longer base is refused before', () => {
  const texts = { password: 'p'.repeat(64), sct: 't'.repeat(64), username: 'u'.repeat(64) };
  const server = { server: `${'s'.repeat(240)}:4433`, serverFingerprint: '0'.repeat(64) };
  const addresses = [`${'a'.repeat(240)}:5592`];
  const pairing = { productId: 'p'.repeat(31), deviceId: 'd'.repeat(31), ...texts, ...server, addresses };
  const longest = encodePairingLink(pairing, `https://${'b'.repeat(1016)}`);
  expect(longest.length).toBeGreaterThan(2_000);
  expect(qrCode(longest)[0]?.length).toBeLessThan(177 + 2 * QUIET);
  expect(() => encodePairingLink(pairing, `https://${'b'.repeat(1017)}`)).toThrow('of at most 1,024 characters');
});

test('a terminal gets the code as drawn, including colours', () => {
  let shown = '';
  const screen = Object.assign(new PassThrough(), { isTTY: true });
  screen.on('data', (data) => (shown += data));
  const output = new Output(false, { stdout: screen, stderr: screen });
  const { link } = share(output, { productId: 'pr', deviceId: 'de', fingerprint: 'ab'.repeat(32) }, {});
  expect(shown).toBe(`${qrCode(link, { colours: true }).join('\n')}\n`);
});
