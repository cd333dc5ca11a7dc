/** The page: what people do changes the state, and the state is what is shown. */

import { Agreement } from "./agreement.js";
import { Asker } from "./asking.js";
import { Columns } from "./columns.js";
import { Drawing } from "./drawing.js";
import { Gallery } from "./gallery.js";
import { Views, noisyInput, sayNoise, showClosest, showNoisy } from "./noise.js";
import { Plane } from "./plane.js";
import { Ruler } from "./ruler.js";
import { searchSentence } from "./searching.js";
import { Sketch } from "./sketch.js";
import { BLANK, changeEntry, fromFragment, inputOf, toFragment } from "./state.js";
import { readSubject } from "./subject.js";
import { Verdict } from "./verdict.js";
import { say } from "./words.js";
import { distanceOf } from "../vectors.js";

/** How long people have to leave all as it is before the page attacks, in milliseconds. */
const REST = 400;
/** What it tries by itself, and when it is told to. */
const FEW = { wanted: 2000, seconds: 20 };
const MANY = { wanted: 20000, seconds: 300 };

/** Points a side of the map. */
const SIDE = 181;

class Explorer {
  constructor(find) {
    this.find = find;
    this.subject = readSubject(find);
    this.asker = new Asker(find("worker").textContent, (message) => this.fail(message));
    this.state = fromFragment(location.hash, this.subject);
    this.current = {};
    this.makeViews();
    this.listen();
    this.asker.ask("open", this.network(), () => this.opened());
  }

  network() {
    const [description, numbers] = ["description", "numbers"].map(
      (name) => this.find(name).textContent,
    );
    return { description: JSON.parse(description), numbers };
  }

  makeViews() {
    const { find, subject } = this;
    const named = (names) =>
      Object.fromEntries(Object.entries(names).map(([name, id]) => [name, find(id)]));
    this.agreement = new Agreement(subject, find("agreement"), (message) => this.fail(message));
    this.views = new Views(subject, find);
    this.verdict = new Verdict(
      subject,
      named({
        label: "label",
        radius: "radius",
        truth: "truth",
        runnerUp: "runner-up",
        meaning: "meaning",
        aloud: "aloud",
      }),
    );
    this.ruler = new Ruler(
      {
        scale: document.querySelector(".scale"),
        ...named({ slider: "norm", proved: "proved", broken: "broken" }),
      },
      (norm) => this.setNorm(norm),
    );
    const choosing = named({
      list: "sample",
      previous: "previous",
      next: "next",
      surprise: "surprise",
      strip: "strip",
    });
    this.gallery = new Gallery(subject, choosing, (sample) => this.choose(sample));
    const change = (place, value) => changeEntry(this.state, subject, place, value);
    if (subject.kind === "image") this.makeDrawing(change);
    if (find("columns")) {
      this.columns = new Columns(subject.columns, find("columns"), (place, value) => {
        change(place, value);
        this.inputChanged();
      });
    }
    this.sketch = new Sketch(subject, find("sketch"));
    if (subject.kind === "plane") {
      this.plane = new Plane(subject, find("plane"), find("plane-classes"), (x, y) =>
        this.moveTo(x, y),
      );
    }
  }

  makeDrawing(change) {
    const { find, subject } = this;
    const ink = () => {
      if (subject.inShape[0] === 1) return [find("paint").checked ? 1 : 0];
      return [1, 3, 5].map(
        (start) => Number.parseInt(find("ink").value.slice(start, start + 2), 16) / 255,
      );
    };
    const places = { canvas: find("drawing"), spoken: find("pixel"), ink };
    const entry = (place) => this.state.changes.get(place) ?? this.current.x[place];
    new Drawing(subject, places, { entry, draw: change, done: () => this.inputChanged() });
    find("blank").addEventListener("click", () => this.choose(BLANK));
  }

  listen() {
    const { find, state } = this;
    document
      .querySelector(".restore")
      .addEventListener("click", () => this.choose(this.state.sample));
    find("random").addEventListener("change", () => this.setNoise({ towards: "random" }));
    find("closest").addEventListener("change", () => this.setNoise({ towards: "closest" }));
    find("another").addEventListener("click", () =>
      this.setNoise({ towards: "random", seed: this.state.seed + 1 }),
    );
    find("search").addEventListener("click", () => this.search(MANY));
    find("link").addEventListener("click", () => this.copyLink());
    addEventListener("hashchange", () => this.follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.showMap());
    find(state.towards).checked = true;
  }

  opened() {
    this.inputChanged();
    if (this.plane) {
      this.asker.ask("field", { area: this.subject.area, side: SIDE }, (field) =>
        this.plane.setField(field),
      );
    }
  }

  choose(sample) {
    Object.assign(this.state, { sample, changes: new Map() });
    this.inputChanged();
  }

  moveTo(x, y) {
    [x, y].forEach((value, place) => changeEntry(this.state, this.subject, place, value));
    this.inputChanged();
  }

  /** A link was followed. */
  follow() {
    if (location.hash === toFragment(this.state)) return;
    this.state = fromFragment(location.hash, this.subject);
    this.find(this.state.towards).checked = true;
    this.inputChanged();
  }

  inputChanged() {
    const { state, subject, find, asker } = this;
    const x = inputOf(state, subject);
    this.current = { ...this.current, x, closest: undefined, noisy: undefined, found: undefined };
    if (subject.kind === "image") this.views.paintInput(find("drawing"), x);
    this.verdict.wait();
    this.gallery.show(state.sample);
    document.querySelector(".restore").disabled = state.changes.size === 0;
    for (const kind of ["label", "tries", "closest"]) asker.drop(kind);
    asker.ask("certify", { x }, (claims) => this.certified(claims));
    this.remember();
  }

  certified(claims) {
    const { state, subject, current, asker } = this;
    const unchanged = state.changes.size === 0 && state.sample !== BLANK;
    const row = subject.indices.indexOf(state.sample);
    current.claims = claims;
    this.verdict.show(claims, unchanged ? subject.labels[row] : null);
    this.columns?.show(current.x, claims.radius);
    const time = claims.milliseconds.toPrecision(2);
    this.find("speed").textContent = `The last evaluation with its certificate took ${time} ms.`;
    if (unchanged) this.agreement.compare(state.sample, claims);
    asker.ask("closest", { x: current.x }, (closest) => this.foundClosest(closest));
    this.noiseChanged();
    showClosest(this.views, current, subject.classes);
  }

  foundClosest(closest) {
    const { current, subject } = this;
    current.closest = closest;
    this.require(closest?.distance);
    showClosest(this.views, current, subject.classes);
    this.noiseChanged();
  }

  /**
   * What noise is a share of: the radius, or where there is none the distance of another answer.
   */
  get unit() {
    const { claims, closest } = this.current;
    return claims.radius || closest?.distance || 1;
  }

  get norm() {
    return this.state.share * this.unit;
  }

  setNorm(norm) {
    this.setNoise({ share: norm / this.unit });
  }

  setNoise(changes) {
    Object.assign(this.state, changes);
    this.find(this.state.towards).checked = true;
    this.noiseChanged();
    this.remember();
  }

  noiseChanged() {
    const { current, state, asker } = this;
    if (!current.claims) return;
    current.noisy = noisyInput(current, state, this.norm);
    current.found = undefined;
    this.showNoise();
    asker.ask("label", { x: current.noisy }, ({ label }) => {
      current.found = label;
      if (label !== current.claims.label) this.require(distanceOf(current.noisy, current.x));
      this.showNoise();
    });
    asker.drop("tries");
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.search(FEW), REST);
  }

  showNoise() {
    const { current, subject, find, norm } = this;
    this.ruler.show(current.claims.radius, current.closest, norm);
    this.sketch.show(current, norm);
    sayNoise(find("noise"), subject, current, norm);
    showNoisy(this.views, current, subject.classes);
    this.showMap();
  }

  showMap() {
    const { x, claims, closest, noisy } = this.current;
    if (claims) this.plane?.show({ x, radius: claims.radius, norm: this.norm, closest, noisy });
  }

  search(effort) {
    const { current, asker, norm } = this;
    const { label, radius } = current.claims;
    if (label < 0) return;
    const hear = (told) => this.searched(told, radius, norm);
    hear({ random: 0, gradient: 0, found: null, done: false });
    asker.ask("tries", { x: current.x, ball: { label, norm }, ...effort }, hear);
  }

  searched(told, radius, norm) {
    const { find, subject, current } = this;
    const sentence = searchSentence(subject.classes, radius, norm, told);
    say(find("searched"), sentence);
    if (told.done) find("searched-aloud").textContent = sentence.replaceAll("*", "");
    if (!told.found) return;
    this.require(told.found.distance);
    if (current.closest === null || told.found.distance < current.closest?.distance) {
      current.closest = told.found;
      showClosest(this.views, current, subject.classes);
      this.showNoise();
    }
  }

  /** A point with another answer has to lie outside of the radius. */
  require(distance) {
    const { radius } = this.current.claims;
    if (distance < radius) {
      this.fail(
        `A certificate is broken: another answer at distance ${distance}, inside the radius ${radius}. Please report it with the link to this state.`,
      );
    }
  }

  remember() {
    history.replaceState(null, "", toFragment(this.state));
  }

  async copyLink() {
    const said = this.find("linked");
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "The address of this page is the link.";
    }
  }

  fail(message) {
    const failure = this.find("failure");
    failure.textContent ||= message;
    failure.hidden = false;
  }
}

new Explorer((id) => document.getElementById(id));
