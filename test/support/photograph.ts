/**
 * A photograph of modules, such as those of a QR code on a screen: taken at an angle, unevenly lit, with camera noise.
 */

/** Where a corner of the picture appears in the photograph, in pixels. */
export type Corner = readonly [x: number, y: number];

export interface Photograph {
  /** Upper left, upper right, lower right, lower left. */
  readonly corners: readonly [Corner, Corner, Corner, Corner];
  /** Pixels of each side. */
  readonly size: number;
  /** Greatest change of a pixel's brightness, of 255. */
  readonly noise: number;
  /** Numbers from 0 to 1. */
  readonly random: () => number;
}

/** RGBA of a photograph of `isDark`, rows of modules that fill the picture; the grey of a desk is around it. */
export function photograph(isDark: readonly (readonly boolean[])[], { corners, size, noise, random }: Photograph): Uint8ClampedArray {
  const brightness = brightnessOf(isDark, inverse(fromUnitSquare(corners)));
  const pixels = new Uint8ClampedArray(4 * size * size).fill(255);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      // Two samples a pixel: edges are as soft as those of a lens. The light comes from the left.
      const mean = (brightness(x + 0.25, y + 0.25) + brightness(x + 0.75, y + 0.75)) / 2;
      const value = mean * (1 - (0.3 * x) / size) + noise * (2 * random() - 1);
      pixels.fill(value, 4 * (y * size + x), 4 * (y * size + x) + 3);
    }
  }
  return pixels;
}

/** Of a point of the photograph. */
function brightnessOf(isDark: readonly (readonly boolean[])[], [a, b, c, d, e, f, g, h, i]: Matrix): (x: number, y: number) => number {
  const [height, width] = [isDark.length, isDark[0]!.length];
  return (x, y) => {
    const w = g! * x + h! * y + i!;
    const module = isDark[Math.floor((height * (d! * x + e! * y + f!)) / w)]?.[Math.floor((width * (a! * x + b! * y + c!)) / w)];
    return module === undefined ? DESK : module ? INK : PAPER;
  };
}

const [DESK, INK, PAPER] = [110, 35, 215];

/** Row-major 3 × 3. */
type Matrix = readonly number[];

/**
 * The projection of the unit square onto four corners (P. Heckbert, Fundamentals of Texture Mapping and Image Warping,
 * 1989, §2.2.3).
 */
function fromUnitSquare([[x0, y0], [x1, y1], [x2, y2], [x3, y3]]: Photograph['corners']): Matrix {
  const [dx1, dy1, dx2, dy2] = [x1 - x2, y1 - y2, x3 - x2, y3 - y2];
  const [sx, sy] = [x0 - x1 + x2 - x3, y0 - y1 + y2 - y3];
  const determinant = dx1 * dy2 - dx2 * dy1;
  const g = (sx * dy2 - dx2 * sy) / determinant;
  const h = (dx1 * sy - sx * dy1) / determinant;
  return [x1 - x0 + g * x1, x3 - x0 + h * x3, x0, y1 - y0 + g * y1, y3 - y0 + h * y3, y0, g, h, 1];
}

/** Up to a factor, which does not matter in projections. */
function inverse([a, b, c, d, e, f, g, h, i]: Matrix): Matrix {
  return [
    e! * i! - f! * h!,
    c! * h! - b! * i!,
    b! * f! - c! * e!,
    f! * g! - d! * i!,
    a! * i! - c! * g!,
    c! * d! - a! * f!,
    d! * h! - e! * g!,
    b! * g! - a! * h!,
    a! * e! - b! * d!,
  ];
}
