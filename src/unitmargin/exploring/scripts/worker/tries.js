/**
 * The page's own attack: points inside a ball that should not, and below the radius cannot, have
 * another label. Half of them are random, the others descend the gradient of the lead from a
 * random point.
 */

import { distanceOf, movedBy, normOf, randomDirection, scaledTo } from "../vectors.js";
import { isLost, largest } from "./margins.js";

/** Gradient steps from one random point, and random points between two descents. */
const STEPS = 10;

/** Length of a gradient step, as a share of the norm of the ball. */
const STRIDE = 0.5;

/** Points lie inside the ball by this share of its norm, so that rounding moves none out of it. */
const INSIDE = 1 - 2 ** -24;

/**
 * Tries about `wanted` points closer to x than `norm`, and yields after each the search: how many
 * points were `random` and how many `gradient` steps, and `found: {point, label, distance, kind}`,
 * which ends it.
 */
export function* tries(program, x, { label, norm }, wanted) {
  const search = { program, x, label, norm, random: 0, gradient: 0, found: null };
  while (!search.found && search.random + search.gradient < wanted) {
    for (let count = 1; count < STEPS && !search.found; count++) {
      attempt(search, randomOffset(search), "random");
      yield search;
    }
    yield* descent(search);
  }
}

function* descent(search) {
  let offset = randomOffset(search);
  attempt(search, offset, "random");
  yield search;
  for (let step = 0; step < STEPS && !search.found; step++) {
    offset = lowered(search, offset);
    attempt(search, offset, "gradient");
    yield search;
  }
}

function randomOffset({ x, norm }) {
  return scaledTo(randomDirection(x.length, Math.random), norm * INSIDE);
}

/** A step down the lead over the strongest rival where the network was evaluated last. */
function lowered({ program, label, norm }, offset) {
  const gradient = program.gradient(label, largest(program.outputs.logits.data, label));
  const length = normOf(gradient);
  if (!(length > 0)) return offset;
  return scaledTo(movedBy(offset, gradient, (-STRIDE * norm) / length), norm * INSIDE);
}

function attempt(search, offset, kind) {
  const { program, x, label, norm } = search;
  const point = movedBy(x, offset);
  const distance = distanceOf(point, x);
  const logits = program.logits(point);
  search[kind]++;
  if (isLost(logits, label) && distance < norm) {
    search.found = { point, distance, label: largest(logits), kind };
  }
}
