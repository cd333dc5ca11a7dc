/** The plane as the network sees it: a label and a radius at each point of a grid. */

import { largest } from "./margins.js";

/**
 * Labels and radii of `side * side` points of an area `[left, right, bottom, top]`, row by row.
 */
export function* field(program, [left, right, bottom, top], side) {
  const labels = new Int32Array(side * side);
  const radii = new Float32Array(side * side);
  for (let row = 0; row < side; row++) {
    const y = top + ((bottom - top) * row) / (side - 1);
    for (let column = 0; column < side; column++) {
      const x = left + ((right - left) * column) / (side - 1);
      const { logits, radius } = program.certify(Float64Array.of(x, y));
      const place = row * side + column;
      labels[place] = largest(logits);
      radii[place] = radius;
    }
    yield;
  }
  return { labels, radii, side };
}
