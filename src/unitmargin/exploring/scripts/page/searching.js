/** The page's own attack on the answer, in words. */

import { bold, count, roundedDown, roundedUp } from "./words.js";

/** What a search within `norm` has found so far. */
export function searchSentence(classes, radius, norm, { random, gradient, found, done }) {
  const points = bold(`${count(random)} random points`);
  const steps = bold(`${count(gradient)} gradient steps`);
  const tried = `Within size ${roundedDown(norm)} this page tried ${points} and ${steps}`;
  if (found) {
    return `${tried}, and the last one is read as ${bold(classes[found.label])}, at size ${roundedUp(found.distance)}.`;
  }
  if (norm < radius)
    return `${tried}${done ? "" : " so far"}: ${bold("none has another answer")}, and none can.`;
  return `${tried}${done ? "" : " so far"}: none has another answer, though beyond the radius one may.`;
}
