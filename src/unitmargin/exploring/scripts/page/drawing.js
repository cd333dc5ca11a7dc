/** Drawing on the input, with a pointer or with keys. */

import { plain } from "./words.js";

/** Drawn values are whole multiples of this part of the domain, which are short in a link. */
const LEVELS = 256;

const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * Lets people draw on a canvas; `draw(place, value)` changes an entry, `done()` ends a stroke's
 * part.
 */
export class Drawing {
  constructor(subject, { canvas, spoken, ink }, { entry, draw, done }) {
    Object.assign(this, { subject, canvas, spoken, ink, entry, draw, done });
    [, this.height, this.width] = subject.inShape;
    this.at = [Math.floor(this.width / 2), Math.floor(this.height / 2)];
    this.last = null;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.last && this.stroke(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => (this.last = null));
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.last = this.position(event);
    this.stroke(event);
  }

  position({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return [((clientX - left) / width) * this.width, ((clientY - top) / height) * this.height];
  }

  /** Dabs along the way from where the pointer was. */
  stroke(event) {
    const [x, y] = this.position(event);
    const [fromX, fromY] = this.last;
    const steps = Math.max(1, Math.ceil(2 * Math.hypot(x - fromX, y - fromY)));
    for (let step = 1; step <= steps; step++) {
      this.dab(fromX + ((x - fromX) * step) / steps, fromY + ((y - fromY) * step) / steps);
    }
    this.last = [x, y];
    this.done();
  }

  /** Ink on all pixels near a point, less at the edge of the brush. */
  dab(x, y) {
    const radius = Math.max(0.7, this.height / 20);
    for (let row = Math.floor(y - radius - 1); row <= y + radius + 1; row++) {
      for (let column = Math.floor(x - radius - 1); column <= x + radius + 1; column++) {
        const apart = Math.hypot(column + 0.5 - x, row + 0.5 - y);
        this.mix(column, row, Math.min(Math.max(radius + 0.5 - apart, 0), 1));
      }
    }
  }

  mix(column, row, weight) {
    if (weight === 0 || column < 0 || row < 0 || column >= this.width || row >= this.height) return;
    const {
      inShape: [channels],
      low,
      high,
    } = this.subject;
    const colours = this.ink();
    for (let channel = 0; channel < channels; channel++) {
      const place = (channel * this.height + row) * this.width + column;
      const old = (this.entry(place) - low) / (high - low);
      const mixed = old + weight * (colours[channel] - old);
      const level = low + (Math.round(mixed * LEVELS) / LEVELS) * (high - low);
      this.draw(place, Math.min(Math.max(level, low), high));
    }
  }

  key(event) {
    const step = KEYS[event.key];
    const paints = event.key === " " || event.key === "Enter";
    if (!step && !paints) return;
    event.preventDefault();
    const [column, row] = this.at;
    if (step) {
      this.at = [clamped(column + step[0], this.width), clamped(row + step[1], this.height)];
    } else {
      this.mix(column, row, 1);
      this.done();
    }
    this.speak();
  }

  speak() {
    const [column, row] = this.at;
    const [channels] = this.subject.inShape;
    const places = Array.from(
      { length: channels },
      (_, channel) => (channel * this.height + row) * this.width + column,
    );
    const values = places.map((place) => plain(this.entry(place))).join(", ");
    this.spoken.textContent = `Row ${row + 1}, column ${column + 1}: ${values}`;
  }
}

function clamped(place, length) {
  return Math.min(Math.max(place, 0), length - 1);
}
