/**
 * The closest point with another answer that some gradients find, and the network confirms.
 *
 * Polar sphere tracing, as `unitmargin verify` does it: a ray from x that is as long as the
 * margins along it allow, and turns towards the normal of the boundary. Of the best ray the first
 * crossing is located.
 */

import { distanceOf, movedBy, normOf, scaledTo } from "../vectors.js";
import { isLost, largest, leadOf } from "./margins.js";

const TURNS = 24;
/** How far a ray turns to the normal, at first and at the end. */
const [FIRST_TURN, LAST_TURN] = [0.4, 0.003];
/** Weight of the past in the mean of the directions in which a ray turns. */
const MEMORY = 0.5;
/**
 * A ray goes this much farther than margins say, so that it crosses; and stays this far below the
 * best.
 */
const [OVERSHOOT, CEILING] = [1e-4, 1 - 1e-5];

/** A ray that never crossed is followed to this multiple of its length, in steps of that growth. */
const [REACH, GROWTH] = [4, 1.15];

const NARROWINGS = 60;
/** Width of the bracket of a crossing at which it is found, relative to its distance. */
const NARROW = 1e-9;

/**
 * A generator that pauses after evaluations; `{point, distance, label}`, or null if no ray met
 * another answer.
 */
export function* closestPoint(program, x) {
  const label = largest(program.logits(x));
  const ray = yield* tracedRay(program, x, label);
  if (!ray) return null;
  const leadAt = (length) => {
    const logits = program.logits(movedBy(x, ray.direction, length));
    return {
      length,
      lead: leadOf(logits, label),
      lost: isLost(logits, label),
      other: largest(logits, label),
    };
  };
  const high = ray.crossed ? leadAt(ray.length) : yield* walkedOut(ray.length, leadAt);
  if (!high?.lost) return null;
  const found = yield* narrowed(leadAt(0), high, leadAt);
  const point = movedBy(x, ray.direction, found.length);
  return { point, distance: distanceOf(point, x), label: found.other };
}

/**
 * The shortest ray that crossed the boundary, else the last one; null where no gradient shows a
 * way.
 */
function* tracedRay(program, x, label) {
  let [direction, mean, length, best] = [null, null, 0, null];
  for (let step = 0; step < TURNS; step++) {
    const logits = program.logits(direction ? movedBy(x, direction, length) : x);
    const [lead, lost] = [leadOf(logits, label), isLost(logits, label)];
    if (lost) best = { direction, length, crossed: true };
    const gradient = program.gradient(label, largest(logits, label));
    const slope = normOf(gradient);
    if (!(slope > 0) || !Number.isFinite(lead)) break;
    const normal = scaledTo(gradient, -1);
    mean = turned(mean, normal, direction ?? normal);
    direction = scaledTo(movedBy(direction ?? normal, mean, turnOf(step)), 1);
    length = Math.min(
      (length + lead / slope) * (1 + OVERSHOOT),
      best ? best.length * CEILING : Infinity,
    );
    if (!(length > 0)) break;
    yield;
  }
  return best ?? (direction && length > 0 ? { direction, length, crossed: false } : null);
}

/** The running mean of what leads from a direction to the normal, across the direction. */
function turned(mean, normal, direction) {
  const along = normal.reduce((sum, entry, i) => sum + entry * direction[i], 0);
  const across = movedBy(normal, direction, -along);
  return mean ? mean.map((entry, i) => MEMORY * entry + (1 - MEMORY) * across[i]) : across;
}

function turnOf(step) {
  return LAST_TURN + (FIRST_TURN - LAST_TURN) * (1 - step / (TURNS - 1)) ** 2;
}

function* walkedOut(length, leadAt) {
  for (let factor = 1; factor < REACH; factor *= GROWTH) {
    const tried = leadAt(factor * length);
    yield;
    if (tried.lost) return tried;
  }
  return null;
}

/** The upper end of a narrow bracket, by secants of which an end that stays twice counts half. */
function* narrowed(low, high, leadAt) {
  let [a, b] = [low.lead, high.lead];
  for (let step = 0; step < NARROWINGS && high.length - low.length > NARROW * high.length; step++) {
    const share = step % 8 === 7 || !(a > b) ? 0.5 : a / (a - b);
    const inside = Math.min(Math.max(share, 1e-10), 1 - 1e-10);
    const tried = leadAt(low.length + inside * (high.length - low.length));
    yield;
    if (tried.lost) [high, b, a] = [tried, tried.lead, a / 2];
    else [low, a, b] = [tried, tried.lead, b / 2];
  }
  // A crossing to the last bit is one that another engine may see on the other side.
  const beyond = leadAt(high.length * (1 + NARROW));
  return beyond.lost ? beyond : high;
}
