/** The map of a classifier of two numbers: answers, their radii, the disc of the chosen point. */

import { count, trimmed } from "./words.js";

export const COLOURS = [
  "#3b7dd8",
  "#e07b39",
  "#3c9d6b",
  "#9163c7",
  "#c9505b",
  "#2a9daa",
  "#b3982a",
  "#c7609f",
  "#8a6f57",
  "#7b8794",
];

const PIXELS = 900;
/** Steps of the radius, as many as half the map has. */
const LINES = 10;
/** Pixels on either side of a change of the answer that are drawn as the boundary. */
const EDGE = 2;
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
/** Of the map's side, that a key moves the point; with shift, five times that. */
const KEY_STEP = 0.01;

export class Plane {
  /** `move(x, y)` is called when people move the point. */
  constructor(subject, canvas, key, move) {
    Object.assign(this, { subject, canvas, move, ground: null });
    canvas.width = canvas.height = PIXELS;
    [this.left, this.right, this.bottom, this.top] = subject.area;
    this.scale = PIXELS / (this.right - this.left);
    key.append(...keyEntries(subject.classes));
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.follow(event);
    });
    canvas.addEventListener("pointermove", (event) => event.buttons && this.follow(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  follow({ clientX, clientY }) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const x = this.left + ((clientX - left) / width) * (this.right - this.left);
    this.to(x, this.top + ((clientY - top) / height) * (this.bottom - this.top));
  }

  key(event) {
    if (!KEYS[event.key] || !this.shown) return;
    event.preventDefault();
    const step = (this.right - this.left) * KEY_STEP * (event.shiftKey ? 5 : 1);
    const [x, y] = this.shown.x;
    this.to(x + KEYS[event.key][0] * step, y + KEYS[event.key][1] * step);
  }

  to(x, y) {
    const inside = (value, least, most) =>
      Math.min(Math.max(trimmed(value, this.right - this.left), least), most);
    const { low, high } = this.subject;
    const [left, bottom] = [this.left, this.bottom].map((side) => Math.max(side, low));
    const [right, top] = [this.right, this.top].map((side) => Math.min(side, high));
    this.move(inside(x, left, right), inside(y, bottom, top));
  }

  /** Draws the map under all else, of labels and radii on a grid. */
  setField(field) {
    const context = new OffscreenCanvas(PIXELS, PIXELS).getContext("2d");
    const picture = context.createImageData(PIXELS, PIXELS);
    const colours = this.subject.classes.map((_, label) => parsed(COLOURS[label % COLOURS.length]));
    const { labels, radii } = spread(field);
    for (let row = 0; row < PIXELS; row++) {
      for (let column = 0; column < PIXELS; column++) {
        const place = row * PIXELS + column;
        const boundary = isEdge(labels, column, row);
        const strength = boundary ? 255 : this.strength(radii[place]);
        const colour = boundary ? [90, 100, 110] : colours[labels[place]];
        picture.data.set([...colour, strength], 4 * place);
      }
    }
    context.putImageData(picture, 0, 0);
    this.ground = context.canvas;
    if (this.shown) this.show(this.shown);
  }

  /** Stronger in equal steps of the radius. */
  strength(radius) {
    const step = (this.right - this.left) / 2 / LINES;
    return 40 + 18 * Math.min(Math.floor(radius / step), LINES);
  }

  show(shown) {
    this.shown = shown;
    const { x, radius, norm, noisy, closest } = shown;
    const context = this.canvas.getContext("2d");
    const ink = getComputedStyle(this.canvas).color;
    context.clearRect(0, 0, PIXELS, PIXELS);
    if (this.ground) context.drawImage(this.ground, 0, 0);
    this.drawSamples(context);
    Object.assign(context, { strokeStyle: ink, fillStyle: ink, lineWidth: 3 });
    this.circle(context, x, radius * this.scale, { fill: "rgba(47, 111, 208, 0.28)", stroke: ink });
    context.setLineDash([10, 9]);
    this.circle(context, x, norm * this.scale, { stroke: ink });
    context.setLineDash([]);
    if (closest) {
      this.lines(context, [x, closest.point]);
      this.cross(context, closest.point);
    }
    if (noisy) this.circle(context, noisy, 8, { stroke: ink });
    this.circle(context, x, 10, { fill: ink });
  }

  drawSamples(context) {
    const { indices, labels, inputs } = this.subject;
    context.globalAlpha = 0.8;
    indices.forEach((_, row) => {
      this.circle(context, inputs.subarray(2 * row, 2 * row + 2), 4.5, {
        fill: COLOURS[labels[row] % COLOURS.length],
      });
    });
    context.globalAlpha = 1;
  }

  place([x, y]) {
    return [(x - this.left) * this.scale, (this.top - y) * this.scale];
  }

  circle(context, centre, radius, { fill, stroke }) {
    context.beginPath();
    context.arc(...this.place(centre), radius, 0, 2 * Math.PI);
    if (fill) Object.assign(context, { fillStyle: fill }).fill();
    if (stroke) Object.assign(context, { strokeStyle: stroke }).stroke();
  }

  lines(context, points) {
    context.beginPath();
    points.forEach((point, number) => context[number ? "lineTo" : "moveTo"](...this.place(point)));
    context.stroke();
  }

  cross(context, point) {
    const [x, y] = this.place(point);
    context.lineWidth = 5;
    for (const side of [-1, 1]) {
      context.beginPath();
      context.moveTo(x - 11, y - 11 * side);
      context.lineTo(x + 11, y + 11 * side);
      context.stroke();
    }
    context.lineWidth = 3;
  }
}

/** Labels and radii of all pixels of the map. */
function spread(field) {
  const labels = new Int32Array(PIXELS * PIXELS);
  const radii = new Float32Array(PIXELS * PIXELS);
  for (let place = 0; place < labels.length; place++) {
    const [column, row] = [place % PIXELS, Math.floor(place / PIXELS)];
    [labels[place], radii[place]] = sampled(field, column / (PIXELS - 1), row / (PIXELS - 1));
  }
  return { labels, radii };
}

/** Whether the answer changes near a pixel, however small the radii around it are. */
function isEdge(labels, column, row) {
  const label = labels[row * PIXELS + column];
  const near = (at, by) => Math.min(Math.max(at + by, 0), PIXELS - 1);
  return [-EDGE, EDGE].some(
    (by) =>
      labels[row * PIXELS + near(column, by)] !== label ||
      labels[near(row, by) * PIXELS + column] !== label,
  );
}

/** Label and radius between grid points: radii of another label count as negative ones. */
function sampled({ labels, radii, side }, across, down) {
  const [x, y] = [across * (side - 1), down * (side - 1)];
  const [column, row] = [Math.min(Math.floor(x), side - 2), Math.min(Math.floor(y), side - 2)];
  const nearest = labels[Math.round(y) * side + Math.round(x)];
  let [sum, other] = [0, nearest];
  for (const [at, weight] of [
    [row * side + column, (1 - x + column) * (1 - y + row)],
    [row * side + column + 1, (x - column) * (1 - y + row)],
    [(row + 1) * side + column, (1 - x + column) * (y - row)],
    [(row + 1) * side + column + 1, (x - column) * (y - row)],
  ]) {
    if (labels[at] !== nearest) other = labels[at];
    sum += weight * radii[at] * (labels[at] === nearest ? 1 : -1);
  }
  return sum < 0 ? [other, -sum] : [nearest, sum];
}

/** What each colour stands for; of many classes, that colours come again. */
function keyEntries(classes) {
  const entries = classes.slice(0, COLOURS.length).map(keyEntry);
  const more = classes.length - entries.length;
  if (more > 0) {
    const last = document.createElement("li");
    last.className = "more";
    last.textContent = `and ${count(more)} more, in the same colours again: look at the answer`;
    entries.push(last);
  }
  return entries;
}

/** The name of a class behind its colour. */
function keyEntry(name, label) {
  const entry = document.createElement("li");
  entry.textContent = name;
  entry.style.setProperty("--colour", COLOURS[label]);
  return entry;
}

function parsed(colour) {
  return [1, 3, 5].map((start) => Number.parseInt(colour.slice(start, start + 2), 16));
}
