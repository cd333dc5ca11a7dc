/**
 * The drawing that says what a radius is: a ball around the input, and another answer behind it.
 */

import { roundedDown, roundedUp } from "./words.js";

/** Radius of the ball in the drawing, and where its centre lies. */
const [BALL, X, Y] = [78, 108, 96];
/** The boundary is drawn within these multiples of the radius, and noise within the drawing. */
const [NEAREST, FARTHEST] = [1.04, 1.6];
/** Half the height of the drawing, and how much its boundary bends. */
const [HALF, BEND] = [100, 26];

export class Sketch {
  constructor(subject, element) {
    this.subject = subject;
    this.part = (name) => element.querySelector(`.${name}`);
    this.element = element;
  }

  show({ claims: { label, radius }, closest, found }, norm) {
    const { classes } = this.subject;
    const ratio = radius > 0 && closest ? closest.distance / radius : FARTHEST;
    const boundary = X + BALL * Math.min(Math.max(ratio, NEAREST), FARTHEST);
    const curve = `M ${boundary + BEND} ${Y - HALF} Q ${boundary - BEND} ${Y} ${boundary + BEND} ${Y + HALF}`;
    this.part("beyond").setAttribute("d", `${curve} L 560 ${Y + HALF} L 560 ${Y - HALF} Z`);
    this.part("boundary").setAttribute("d", curve);
    this.part("ball").setAttribute("r", radius > 0 ? BALL : 0);
    this.part("spoke").setAttribute("x2", radius > 0 ? X + BALL : X);
    this.move("cross", boundary, Y);
    this.placeNoise(radius, norm, found !== undefined && found !== label);
    this.say("radius-word", radius > 0 ? `radius ${roundedDown(radius)}` : "no radius");
    this.say("inside-word", radius > 0 ? `always ${shortened(classes[label])}` : "");
    const words = closest
      ? [`can be ${shortened(classes[closest.label])}`, `from ${roundedUp(closest.distance)} on`]
      : ["another answer:", closest === null ? "none found" : "searching …"];
    words.forEach((word, line) => this.say(`beyond-word${line}`, word, boundary + BEND + 8));
    const about =
      radius > 0
        ? `a ball of radius ${roundedDown(radius)} around the input, in which the answer is always ${classes[label]}; behind it`
        : "the input, without a radius; near it";
    this.element.setAttribute("aria-label", `Sketch: ${about} ${words.join(" ")}.`);
  }

  /** The noise points up, away from the words. */
  placeNoise(radius, norm, lost) {
    const length = Math.min(radius > 0 ? norm / radius : 1, FARTHEST) * BALL;
    const [across, up] = [0.75, 0.66].map((share) => share * length);
    this.move("noise", X + across, Y - Math.min(up, HALF - 12));
    this.part("noise").classList.toggle("lost", lost);
  }

  move(name, x, y) {
    this.part(name).setAttribute("transform", `translate(${x} ${y})`);
  }

  say(name, text, x) {
    this.part(name).textContent = text;
    if (x !== undefined) this.part(name).setAttribute("x", x);
  }
}

function shortened(name) {
  return name.length > 12 ? `${name.slice(0, 11)}…` : name;
}
