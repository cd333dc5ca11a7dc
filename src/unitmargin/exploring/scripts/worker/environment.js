/** What the certificates assume of the arithmetic, asked of the machine before any is shown. */

const SMALLEST_NORMAL = 2 ** -1022;

/**
 * Throws where doubles are not IEEE's: denormal numbers are kept, roots and products are rounded
 * once.
 */
export function requireDoubles() {
  const half = SMALLEST_NORMAL * 0.5;
  const third = 1 + 2 ** -27;
  const kept = half * 2 === SMALLEST_NORMAL && half > 0;
  const unfused = third * third - (1 + 2 ** -26) === 0;
  const rooted = [2, 3, 0.1, 1e-300, 1e300].every(
    (n) => Math.abs(Math.sqrt(n) ** 2 / n - 1) < 1e-15,
  );
  if (!kept || !unfused || !rooted) {
    throw new Error("this browser does not compute with IEEE doubles, which radii assume");
  }
}
