/**
 * The ruler of norms: what is proved, what is not known, and from where on another answer exists.
 */

import { roundedDown, roundedUp } from "./words.js";

/** The ruler ends at this multiple of the larger one of radius and closest point. */
const BEYOND = 1.6;

const STEPS = 1000;

export class Ruler {
  /** `change(norm)` is called when people move the noise. */
  constructor({ scale, slider, proved, broken }, change) {
    Object.assign(this, { slider, provedWord: proved, brokenWord: broken, end: 1 });
    [this.proved, this.unknown] = [".proved", ".unknown"].map((part) => scale.querySelector(part));
    slider.addEventListener("input", () => change((Number(slider.value) / STEPS) * this.end));
  }

  /** `closest` is undefined while it is searched, and null where none was found. */
  show(radius, closest, norm) {
    const distance = closest?.distance ?? Infinity;
    const reach = closest ? Math.max(radius, distance) : radius;
    this.end = (reach || 1) * BEYOND;
    const part = (length) => `${100 * Math.min(length / this.end, 1)}%`;
    this.proved.style.width = part(radius);
    this.unknown.style.width = part(Math.min(distance, this.end) - radius);
    this.slider.value = Math.round((norm / this.end) * STEPS);
    this.slider.ariaValueText = `${roundedDown(norm)}, ${norm < radius ? "below" : "beyond"} the radius of ${roundedDown(radius)}`;
    this.provedWord.textContent = roundedDown(radius);
    this.brokenWord.textContent =
      closest === undefined
        ? "searching …"
        : closest
          ? `from ${roundedUp(distance)} on`
          : "none found";
  }
}
