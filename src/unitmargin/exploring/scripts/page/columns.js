/** Sliders for the columns of a table, each with the part of it in which it may move alone. */

import { digitsOf, plain } from "./words.js";

const STEPS = 200;

/** By which a slider moves; unknown of what has no ends. */
export function stepOf({ low, high }) {
  return high > low ? (high - low) / STEPS : undefined;
}

/** What an entry of an input means in the units of its column. */
export function columnValue({ shift, unit }, entry) {
  return shift + unit * entry;
}

/** The entry that the network was trained on for a value: rounded as a table's cells are. */
export function columnEntry({ shift, unit }, value) {
  return Math.fround((value - shift) / unit);
}

export class Columns {
  /** `change` is called with the entries that a slider or a choice moves, each with its place. */
  constructor(columns, element, change) {
    this.parts = columns.map((column) =>
      column.categories ? new Choice(column, change) : new Slider(column, change),
    );
    element.append(...this.parts.map(({ element: part }) => part));
  }

  show(x, radius) {
    for (const part of this.parts) part.show(x, radius);
  }
}

class Slider {
  constructor(column, change) {
    Object.assign(this, { column, change });
    this.element = document.createElement("label");
    this.element.className = "column";
    this.element.innerHTML =
      '<span class="line"><span class="name"></span><output></output></span><input type="range">' +
      '<span class="band" aria-hidden="true"><span></span></span>';
    const part = (name) => this.element.querySelector(name);
    [this.output, this.input, this.band] = [part("output"), part("input"), part(".band span")];
    part(".name").textContent = column.name;
    Object.assign(this.input, {
      min: column.low,
      max: column.high,
      step: stepOf(column),
      ariaLabel: column.name,
    });
    this.input.addEventListener("input", () => {
      const entry = columnEntry(column, Number(this.input.value));
      change([[column.place, Math.min(Math.max(entry, column.lowest), column.highest)]]);
    });
  }

  show(x, radius) {
    const { low, high, unit, place } = this.column;
    const value = columnValue(this.column, x[place]);
    const text = plain(value, digitsOf(value, stepOf(this.column)));
    this.output.textContent = text;
    this.input.value = value;
    this.input.ariaValueText = text;
    const part = (at) => 100 * Math.min(Math.max((at - low) / (high - low), 0), 1);
    const [from, to] = [part(value - radius * unit), part(value + radius * unit)];
    Object.assign(this.band.style, { left: `${from}%`, width: `${to - from}%` });
  }
}

class Choice {
  constructor(column, change) {
    this.column = column;
    this.element = document.createElement("label");
    this.element.className = "column";
    this.select = document.createElement("select");
    column.categories.forEach((word, number) => this.select.add(new Option(word, number)));
    this.element.append(column.name, this.select);
    this.select.addEventListener("change", () => {
      const chosen = Number(this.select.value);
      const entry = (number) => (number === chosen ? column.entry : 0);
      change(column.categories.map((_, number) => [column.place + number, entry(number)]));
    });
  }

  show(x) {
    const { categories, place } = this.column;
    const entries = categories.map((_, number) => x[place + number]);
    this.select.value = entries.indexOf(Math.max(...entries));
  }
}
