/** The answer and its radius, in words for people who never met a radius. */

import { bold, count, percent, roundedDown, say } from "./words.js";

const LONG_NAME = 8;

export class Verdict {
  constructor(subject, elements) {
    Object.assign(this, { subject, ...elements });
  }

  /** The radius shown is of the input before; its value is none. */
  wait() {
    this.radius.value = "";
  }

  /** `truth` is the label of an unchanged test sample, or null. */
  show({ label, runnerUp, radius }, truth) {
    const { classes } = this.subject;
    const name = classes[label] ?? "none";
    this.label.textContent = name;
    this.label.classList.toggle("long", name.length > LONG_NAME);
    this.radius.value = String(radius);
    this.radius.textContent = roundedDown(radius);
    this.truth.textContent =
      truth === null ? "not a test sample" : `the test sample's label: ${classes[truth]}`;
    this.truth.classList.toggle("wrong", truth !== null && truth !== label);
    this.runnerUp.textContent = label < 0 ? "" : `second best: ${classes[runnerUp]}`;
    say(this.meaning, this.sentence(name, radius));
    clearTimeout(this.pause);
    this.pause = setTimeout(() => {
      this.aloud.textContent = `Answer ${name}, radius ${roundedDown(radius)}.`;
    }, 700);
  }

  sentence(name, radius) {
    if (!(radius > 0))
      return `${bold("No radius")}: the two best answers are too close to each other to promise anything.`;
    const limit = bold(roundedDown(radius));
    const start = `It stays ${bold(name)} for every change of less than ${limit}. `;
    return start + (this.subject.kind === "image" ? this.ofPixels(radius) : this.ofEntries(radius));
  }

  ofPixels(radius) {
    const { size, low, high, inShape } = this.subject;
    const what = inShape[0] === 1 ? "pixel" : "colour of a pixel";
    const all = inShape[0] === 1 ? "pixels" : "colours of pixels";
    const width = high - low;
    const [single, each] = [radius / width, radius / width / Math.sqrt(size)];
    const one =
      single < 1
        ? `one ${what} alone by up to ${percent(single)} of the way from black to white`
        : `any ${count(Math.min(size, Math.floor(single ** 2)))} ${all} all the way from black to white`;
    return `That is, say, ${one}, or all ${count(size)} ${all} at once by ${percent(each)} each, or anything in between.`;
  }

  ofEntries(radius) {
    const { size, kind, columns, short, categories } = this.subject;
    if (kind === "plane")
      return "That is every point of the disc: the boundary where the answer changes lies outside of it.";
    const what = columns.length ? "column" : "number";
    const each = roundedDown(radius / Math.sqrt(size));
    // Of a column of words the network reads a number for each word.
    const words = columns.length && columns.length !== size;
    const all = words ? `${count(size)} numbers behind the columns` : count(size);
    return `That is any one ${what} alone by up to ${roundedDown(radius)}, or all ${all} at once by ${each} each${short}, or anything in between.${categories && ` ${categories}`}`;
  }
}
