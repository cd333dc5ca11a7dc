/** The page: what people do changes the state, and the state is what is shown. */

import { Address } from "./address.js";
import { Agreement } from "./agreement.js";
import { Asker } from "./asking.js";
import { Breaking } from "./breaking.js";
import { Columns } from "./columns.js";
import { Drawing } from "./drawing.js";
import { Gallery } from "./gallery.js";
import { Plane } from "./plane.js";
import { paint } from "./pictures.js";
import { BLANK, changeEntry, entryOf, fromFragment, inputOf, toFragment } from "./state.js";
import { readSubject } from "./subject.js";
import { Verdict } from "./verdict.js";
import { plain } from "./words.js";

/** Points a side of the map. */
const SIDE = 121;

class Explorer {
  constructor(find) {
    this.find = find;
    this.subject = readSubject(find);
    this.asker = new Asker(find("worker").textContent, (message) => this.fail(message));
    this.state = fromFragment(location.hash, this.subject);
    this.address = new Address();
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
      this.columns = new Columns(subject.columns, find("columns"), (entries) => {
        for (const [place, value] of entries) change(place, value);
        this.inputChanged();
      });
    }
    if (subject.kind === "plane") {
      this.plane = new Plane(subject, find("plane"), find("plane-classes"), (x, y) =>
        this.moveTo(x, y),
      );
    }
    this.breaking = new Breaking(
      this,
      named({ slider: "norm", proved: "proved", broken: "broken" }),
    );
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
    const entry = (place) => entryOf(this.state, subject, place);
    new Drawing(subject, places, { entry, draw: change, done: () => this.inputChanged() });
    find("blank").addEventListener("click", () => this.choose(BLANK));
  }

  listen() {
    const { find } = this;
    document
      .querySelector(".restore")
      .addEventListener("click", () => this.choose(this.state.sample));
    find("link").addEventListener("click", () => this.copyLink());
    addEventListener("hashchange", () => this.follow());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
      this.breaking.showMap(),
    );
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
    if (location.hash === this.address.written) return;
    this.state = fromFragment(location.hash, this.subject);
    this.breaking.showState();
    this.inputChanged();
  }

  inputChanged() {
    const { state, subject, find, asker } = this;
    const x = inputOf(state, subject);
    this.current = { x };
    this.breaking.stop();
    if (subject.kind === "image") paint(find("drawing"), x, subject);
    this.verdict.wait();
    this.gallery.show(state.sample);
    document.querySelector(".restore").disabled = state.changes.size === 0;
    asker.ask("certify", { x }, (claims) => this.certified(claims));
    this.remember();
  }

  certified(claims) {
    const { state, subject, current } = this;
    const unchanged = state.changes.size === 0 && state.sample !== BLANK;
    const row = subject.indices.indexOf(state.sample);
    current.claims = claims;
    this.verdict.show(claims, unchanged ? subject.labels[row] : null);
    this.columns?.show(current.x, claims.radius);
    const time = plain(claims.milliseconds, 2);
    this.find("speed").textContent = `The last evaluation with its certificate took ${time} ms.`;
    if (unchanged) this.agreement.compare(state.sample, claims);
    this.breaking.start();
  }

  remember() {
    this.address.write(toFragment(this.state));
  }

  async copyLink() {
    const said = this.find("linked");
    this.address.flush();
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "The address of this page is the link.";
    }
  }

  /** What went wrong first; nothing that is shown may be relied on. */
  fail(message) {
    const failure = this.find("failure");
    failure.textContent ||= message;
    failure.hidden = false;
  }
}

new Explorer((id) => document.getElementById(id));
