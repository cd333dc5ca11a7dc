/**
 * The closest point with another label that a few gradients find, and the network confirms.
 *
 * First the closed form of the paper, a step along the gradient of the two largest logits, then the same
 * from the boundary that was reached: a point of the boundary is exchanged for the nearest one of the plane
 * that touches the boundary there. Each is a generator that pauses after an evaluation.
 */

import { distanceOf, movedBy, normOf } from "../vectors.js";
import { isLost, largest, leadOf } from "./margins.js";

const ROUNDS = 3;

/** A further round has to come closer by this share. */
const WORTHWHILE = 1e-3;

const GROWTH = 1.15;
/** How far a ray is followed, in units of the distance that its plane promises. */
const REACH = 4;

const NARROWINGS = 60;
/** Width of the bracket of a crossing at which it is found, relative to its distance. */
const NARROW = 1e-9;

/** `{point, distance, label}`, or null where no ray met another label. */
export function* closestPoint(program, x) {
  const logits = program.logits(x);
  const label = largest(logits);
  const lead = leadOf(logits, label);
  yield;
  if (!(lead > 0)) return null;
  let move = planeMove(program.gradient(label, largest(logits, label)), lead);
  let found = yield* firstFlip(program, x, move, label);
  for (let round = 1; found && round < ROUNDS; round++) {
    move = nextMove(program, x, found, label);
    if (!move || normOf(move) > found.distance * (1 - WORTHWHILE)) break;
    const next = yield* firstFlip(program, x, move, label);
    if (!next || next.distance > found.distance * (1 - WORTHWHILE)) break;
    found = next;
  }
  return found;
}

/** From where a lead is this large to the plane where it is zero, if its gradient stayed the same. */
function planeMove(gradient, lead) {
  const squared = normOf(gradient) ** 2;
  return squared > 0 ? gradient.map((slope) => (-lead * slope) / squared) : null;
}

/** From x to the plane that touches the boundary at the point that was found. */
function nextMove(program, x, found, label) {
  const logits = program.logits(found.point);
  const lead = logits[label] - logits[found.label];
  const gradient = program.gradient(label, found.label);
  const along = gradient.reduce((sum, slope, i) => sum + slope * (x[i] - found.point[i]), lead);
  return planeMove(gradient, along);
}

/** The first other label on a ray from x, located by secants that keep a crossing between them. */
function* firstFlip(program, x, move, label) {
  if (!move || !(normOf(move) > 0)) return null;
  const leadAt = (factor) => {
    const logits = program.logits(movedBy(x, move, factor));
    const lead = leadOf(logits, label);
    return { factor, lead, lost: isLost(logits, label), other: largest(logits, label) };
  };
  let low = leadAt(0);
  let high = null;
  for (let factor = 1 + 1e-6; factor < REACH; factor *= GROWTH) {
    const tried = leadAt(factor);
    yield;
    if (tried.lost) {
      high = tried;
      break;
    }
    low = tried;
  }
  return high && (yield* narrowed(x, move, low, high, leadAt));
}

/** The Illinois rule: the end that stays twice counts half, so that both ends move. */
function* narrowed(x, move, low, high, leadAt) {
  let [a, b] = [low.lead, high.lead];
  for (let step = 0; step < NARROWINGS && high.factor - low.factor > NARROW * high.factor; step++) {
    const share = step % 8 === 7 || !(a > b) ? 0.5 : a / (a - b);
    const inside = Math.min(Math.max(share, 1e-10), 1 - 1e-10);
    const tried = leadAt(low.factor + inside * (high.factor - low.factor));
    yield;
    if (tried.lost) [high, b, a] = [tried, tried.lead, a / 2];
    else [low, a, b] = [tried, tried.lead, b / 2];
  }
  const point = movedBy(x, move, high.factor);
  return { point, distance: distanceOf(point, x), label: high.other };
}
