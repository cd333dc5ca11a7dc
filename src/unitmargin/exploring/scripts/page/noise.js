/**
 * Noise of a chosen norm on the input, what the network makes of it, and both as pictures or rows.
 */

import { listChanges } from "./changes.js";
import { paint, paintChange } from "./pictures.js";
import { movedBy, randomDirection, scaledTo, uniform } from "../vectors.js";
import { bold, percent, roundedDown, roundedUp, say } from "./words.js";

/**
 * The input moved by the noise that a state tells; towards the closest point once that is known.
 */
export function noisyInput({ x, closest }, { towards, seed }, norm) {
  const known = towards === "closest" && closest;
  const direction = known
    ? scaledTo(movedBy(closest.point, x, -1), 1)
    : randomDirection(x.length, uniform(seed));
  return movedBy(x, direction, norm);
}

/** A sentence on the answer to a noisy input; noise goes `astray` that has no point to lead to. */
export function noiseSentence(classes, { label, radius }, norm, found, astray = false) {
  // Of 0.95 times the radius, the share may be the double below 0.95, which is no 94 %.
  const share = (norm / radius) * (1 + 2 * Number.EPSILON);
  const size = radius > 0 ? `, ${percent(share)} of the radius` : "";
  const way = astray ? ", in a random direction as no other answer is known" : "";
  const start = `Noise of size ${bold(roundedDown(norm))}${size}${way}: `;
  if (found === undefined) return `${start}…`;
  const name = bold(classes[found]);
  if (norm < radius) return `${start}the answer is still ${name}, and it cannot be another one.`;
  if (found === label) return `${start}the answer is still ${name}, but here nothing is proved.`;
  return `${start}the answer is ${name}. Beyond the radius it may change.`;
}

/**
 * Shows a point beside the input: `noisy` and its noise, or the `other` point and the difference.
 */
export class Views {
  constructor(subject, find) {
    Object.assign(this, { subject, find });
  }

  show(name, second, x, point, caption, secondCaption) {
    if (this.subject.kind === "image") {
      this.caption(name, caption);
      this.paintPoint(name, second, x, point, secondCaption);
    } else {
      this.find(`${name}-caption`).textContent = caption;
      if (point) listChanges(this.find(name), this.subject.columns, x, point);
      else this.find(name).replaceChildren();
    }
  }

  /** A point and its difference from x; two empty pictures where there is no point. */
  paintPoint(name, second, x, point, caption) {
    const { subject, find } = this;
    paint(find(name), point ?? x.map(() => subject.low), subject);
    const change = point ? movedBy(point, x, -1) : x.map(() => 0);
    const factor = paintChange(find(second), change, subject);
    const times = factor > 1 ? `, ${factor} times as strong` : "";
    this.caption(second, point ? `${caption}, around grey${times}` : `${caption}: not known`);
  }

  caption(name, text) {
    this.find(`${name}-caption`).textContent = text;
    this.find(name).setAttribute("aria-label", text);
  }
}

export function showNoisy(views, { x, noisy, found }, classes) {
  const read = found === undefined ? "…" : `read as ${classes[found]}`;
  views.show("noisy", "noise-alone", x, noisy, `With the noise: ${read}`, "The noise alone");
}

export function showClosest(views, { x, closest }, classes) {
  const words = closest
    ? `Closest other answer found: read as ${classes[closest.label]}, at distance ${roundedUp(closest.distance)}`
    : closest === null
      ? "No other answer found"
      : "Searching the closest other answer …";
  views.show("other", "difference", x, closest?.point, words, "Its difference from the input");
}

export function sayNoise(element, { classes }, { claims, found, closest }, norm, towards) {
  const astray = towards === "closest" && !closest;
  say(element, noiseSentence(classes, claims, norm, found, astray));
}
