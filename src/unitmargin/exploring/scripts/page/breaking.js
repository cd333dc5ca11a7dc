/** The attempts to break an answer: people's noise, the closest other answer, the page's own search. */

import { Views, noisyInput, sayNoise, showClosest, showNoisy } from "./noise.js";
import { Ruler } from "./ruler.js";
import { searchSentence } from "./searching.js";
import { Sketch } from "./sketch.js";
import { say, unmarked } from "./words.js";
import { distanceOf } from "../vectors.js";

/** How long people have to leave all as it is before the page attacks, in milliseconds. */
const REST = 400;
/** What it tries by itself, and when it is told to. */
const FEW = { wanted: 2000, seconds: 20 };
const MANY = { wanted: 20000, seconds: 300 };

export class Breaking {
  /** `explorer` holds the state and what is known of the current input, which is read at each call. */
  constructor(explorer, rulerParts) {
    const { find, subject } = explorer;
    this.explorer = explorer;
    this.views = new Views(subject, find);
    this.sketch = new Sketch(subject, find("sketch"));
    const parts = { scale: document.querySelector(".scale"), ...rulerParts };
    this.ruler = new Ruler(parts, (norm) => this.setNorm(norm));
    for (const towards of ["random", "closest"]) {
      find(towards).addEventListener("change", () => this.setNoise({ towards }));
    }
    find("another").addEventListener("click", () => {
      this.setNoise({ towards: "random", seed: explorer.state.seed + 1 });
    });
    find("search").addEventListener("click", () => this.search(MANY));
    this.showState();
  }

  showState() {
    const { find, state } = this.explorer;
    find(state.towards).checked = true;
  }

  /** Nothing is asked about an input before its label and radius are known. */
  stop() {
    clearTimeout(this.rest);
    for (const kind of ["label", "tries", "closest"]) this.explorer.asker.drop(kind);
  }

  start() {
    const { asker, current, subject } = this.explorer;
    asker.ask("closest", { x: current.x }, (closest) => this.foundClosest(closest));
    this.noiseChanged();
    showClosest(this.views, current, subject.classes);
  }

  foundClosest(closest) {
    const { norm } = this;
    this.require(closest?.distance);
    this.setClosest(closest);
    if (this.norm !== norm) this.searchLater();
  }

  setClosest(closest) {
    const { current, state, subject } = this.explorer;
    const { norm } = this;
    current.closest = closest;
    showClosest(this.views, current, subject.classes);
    if (state.towards === "closest" || this.norm !== norm) this.moveNoise();
    else this.showNoise();
  }

  /**
   * What noise is a share of: the radius, or where there is none the distance of another answer.
   */
  get unit() {
    const { claims, closest } = this.explorer.current;
    return claims.radius || closest?.distance || 1;
  }

  get norm() {
    return this.explorer.state.share * this.unit;
  }

  setNorm(norm) {
    if (this.explorer.current.claims) this.setNoise({ share: norm / this.unit });
  }

  setNoise(changes) {
    Object.assign(this.explorer.state, changes);
    this.showState();
    this.noiseChanged();
    this.explorer.remember();
  }

  noiseChanged() {
    if (!this.explorer.current.claims) return;
    this.moveNoise();
    this.searchLater();
  }

  /** A search that runs has another norm, or was for other noise. */
  searchLater() {
    this.explorer.asker.drop("tries");
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.search(FEW), REST);
  }

  moveNoise() {
    const { current, state, asker } = this.explorer;
    current.noisy = noisyInput(current, state, this.norm);
    current.found = undefined;
    this.showNoise();
    asker.ask("label", { x: current.noisy }, ({ label }) => {
      current.found = label;
      if (label !== current.claims.label) this.require(distanceOf(current.noisy, current.x));
      this.showNoise();
    });
  }

  showNoise() {
    const {
      explorer: { current, state, subject, find },
      norm,
    } = this;
    this.ruler.show(current.claims.radius, current.closest, norm);
    this.sketch.show(current, norm);
    sayNoise(find("noise"), subject, current, norm, state.towards);
    showNoisy(this.views, current, subject.classes);
    this.showMap();
  }

  showMap() {
    const { x, claims, closest, noisy } = this.explorer.current;
    const shown = claims && { x, radius: claims.radius, norm: this.norm, closest, noisy };
    if (shown) this.explorer.plane?.show(shown);
  }

  search(effort) {
    const { current, asker } = this.explorer;
    if (!(current.claims?.label >= 0)) return;
    clearTimeout(this.rest);
    const {
      claims: { label, radius },
    } = current;
    const { norm } = this;
    const hear = (told) => this.searched(told, radius, norm);
    hear({ random: 0, gradient: 0, found: null, done: false });
    asker.ask("tries", { x: current.x, ball: { label, norm }, ...effort }, hear);
  }

  searched(told, radius, norm) {
    const { find, subject, current } = this.explorer;
    const sentence = searchSentence(subject.classes, radius, norm, told);
    say(find("searched"), sentence);
    if (told.done) find("searched-aloud").textContent = unmarked(sentence);
    if (!told.found) return;
    this.require(told.found.distance);
    if (current.closest === null || told.found.distance < current.closest?.distance) {
      this.setClosest(told.found);
    }
  }

  /** A point with another answer has to lie outside of the radius. */
  require(distance) {
    const { radius } = this.explorer.current.claims;
    if (distance < radius) {
      this.explorer.fail(
        `A certificate is broken: another answer at distance ${distance}, inside the radius ${radius}. Please report it with the link to this state.`,
      );
    }
  }
}
