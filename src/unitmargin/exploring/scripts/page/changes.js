/**
 * What a point changes in the columns of a table: the largest changes, in the units of the
 * columns.
 */

import { columnValue, stepOf } from "./columns.js";
import { apart, count, digitsOf } from "./words.js";

const SHOWN = 6;

/** The rows of an HTML table: name, value, and what it becomes. */
export function listChanges(table, columns, x, point) {
  const entries = columns.length ? entriesOf(columns) : numbered(x);
  const moved = entries
    .map((entry) => ({ ...entry, by: Math.abs(point[entry.place] - x[entry.place]) }))
    .filter(({ by }) => by > 0)
    .sort((a, b) => b.by - a.by);
  const rows = moved.slice(0, SHOWN).map(({ name, column, place }) => {
    const values = [x[place], point[place]].map((entry) => columnValue(column, entry));
    const least = Math.max(...values.map((value) => digitsOf(value, stepOf(column))));
    const [before, after] = apart(values, least);
    return `<tr><td>${escaped(name)}</td><td class="number">${before}</td><td class="number">${after}</td></tr>`;
  });
  const more = moved.length - rows.length;
  if (more > 0) rows.push(`<tr><td colspan="3">and ${count(more)} more, each of less</td></tr>`);
  table.innerHTML = `<thead><tr><th scope="col">Column</th><th scope="col" class="number">now</th><th scope="col" class="number">then</th></tr></thead><tbody>${rows.join("")}</tbody>`;
}

/** Of inputs too long for sliders: entries by their numbers. */
function numbered(x) {
  const column = { shift: 0, unit: 1 };
  return Array.from(x, (_, place) => ({ name: `number ${place + 1}`, column, place }));
}

/** One entry a number, and one for each category of words. */
function entriesOf(columns) {
  return columns.flatMap((column) => {
    if (!column.categories) return [{ name: column.name, column, place: column.place }];
    const share = { shift: 0, unit: 1 / column.entry };
    return column.categories.map((word, number) => ({
      name: `${column.name} is ${word}`,
      column: share,
      place: column.place + number,
    }));
  });
}

function escaped(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element.innerHTML;
}
