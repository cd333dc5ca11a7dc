/** Choosing a test sample: a list, neighbours, any, and pictures of images. */

import { BLANK } from "./state.js";
import { paint } from "./pictures.js";

export class Gallery {
  constructor(subject, { list, previous, next, surprise, strip }, choose) {
    Object.assign(this, { subject, list, strip, choose });
    const { indices, labels, classes } = subject;
    indices.forEach((index, row) =>
      list.add(new Option(`${index}, labelled ${classes[labels[row]]}`, index)),
    );
    if (strip) list.add(new Option("blank page", BLANK));
    list.addEventListener("change", () =>
      choose(list.value === BLANK ? BLANK : Number(list.value)),
    );
    previous.addEventListener("click", () => this.step(-1));
    next.addEventListener("click", () => this.step(1));
    surprise.addEventListener("click", () => this.any());
    if (strip) indices.forEach((index, row) => strip.append(this.tile(index, row)));
  }

  step(by) {
    const { indices } = this.subject;
    const row = Math.max(indices.indexOf(this.shown), 0);
    this.choose(indices[(row + by + indices.length) % indices.length]);
  }

  any() {
    const others = this.subject.indices.filter((index) => index !== this.shown);
    this.choose(others[Math.floor(Math.random() * others.length)] ?? this.shown);
  }

  tile(index, row) {
    const { subject } = this;
    const [tile, radio, canvas] = ["label", "input", "canvas"].map((name) =>
      document.createElement(name),
    );
    Object.assign(radio, { type: "radio", name: "tile", value: index });
    radio.setAttribute(
      "aria-label",
      `Test image ${index}, labelled ${subject.classes[subject.labels[row]]}`,
    );
    radio.addEventListener("change", () => this.choose(index));
    paint(canvas, subject.inputs.subarray(row * subject.size, (row + 1) * subject.size), subject);
    tile.append(radio, canvas);
    return tile;
  }

  /** Marks the sample that is shown; a blank page is none. */
  show(sample) {
    if (this.shown === sample) return;
    this.shown = sample;
    this.list.value = String(sample);
    for (const radio of this.strip?.querySelectorAll("input") ?? []) {
      radio.checked = radio.value === String(sample);
      if (radio.checked) this.reveal(radio.parentElement);
    }
  }

  /** Scrolls the strip, and only the strip. */
  reveal(tile) {
    const { strip } = this;
    const [start, end] = [
      tile.offsetLeft - strip.offsetLeft,
      tile.offsetLeft - strip.offsetLeft + tile.offsetWidth,
    ];
    if (start < strip.scrollLeft || end > strip.scrollLeft + strip.clientWidth) {
      strip.scrollLeft = start - strip.clientWidth / 2;
    }
  }
}
