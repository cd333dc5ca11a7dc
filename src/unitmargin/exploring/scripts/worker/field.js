/** The plane as the network sees it: a label and a margin at each point of a grid. */

import { largest, leadOf } from "./margins.js";

/**
 * Labels and margins of `side * side` points of an area `[left, right, bottom, top]`, row by row.
 */
export function* field(program, [left, right, bottom, top], side) {
  const labels = new Int32Array(side * side);
  const margins = new Float32Array(side * side);
  for (let row = 0; row < side; row++) {
    const y = top + ((bottom - top) * row) / (side - 1);
    for (let column = 0; column < side; column++) {
      const x = left + ((right - left) * column) / (side - 1);
      const logits = program.logits(Float64Array.of(x, y));
      const place = row * side + column;
      labels[place] = largest(logits);
      margins[place] = leadOf(logits, labels[place]);
    }
    yield;
  }
  return { labels, margins, side };
}
