// Choosing a state: a cell of a grid, a number, or values on sliders.

import { h, number } from "./dom.js";

const ARROWS = { RIGHT: "→", LEFT: "←", UP: "↑", DOWN: "↓", EAST: "→", WEST: "←", NORTH: "↑", SOUTH: "↓" };
const MOVES = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class Grid {
  constructor(about, actions, onChoose) {
    Object.assign(this, { about, actions, onChoose });
    this.cells = about.cells.map((cell, i) => h("button", {
      type: "button", role: "gridcell", tabindex: -1, class: `cell${cell.end ? ` end ${cell.end}` : ""}`, "data-state": cell.state, "aria-label": cell.end ? `${cell.label}: ${cell.end}` : cell.label, "aria-disabled": cell.end ? "true" : null,
      text: cell.end ?? "", onclick: () => this.choose(i), onkeydown: (event) => this.key(event, i),
    }));
    const rows = [];
    for (let i = 0; i < this.cells.length; i += about.columns) rows.push(h("div", { role: "row" }, this.cells.slice(i, i + about.columns)));
    this.element = h("div", { class: "board", role: "grid", "aria-label": "States. Arrow keys move." }, rows);
    this.element.style.gridTemplateColumns = `repeat(${about.columns}, minmax(0, 1fr))`;
    rows.forEach((row) => { row.style.display = "contents"; });
    this.reflect(about.start);
  }

  key(event, i) {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const { columns, cells } = this.about;
    let [x, y] = [(i % columns) + move[0], Math.floor(i / columns) + move[1]];
    while (x >= 0 && x < columns && y >= 0 && y * columns + x < cells.length) {
      const next = y * columns + x;
      if (!cells[next].end && !this.cells[next].classList.contains("end")) {
        this.cells[next].focus();
        this.choose(next);
        return;
      }
      [x, y] = [x + move[0], y + move[1]];
    }
  }

  choose(i) {
    if (this.about.cells[i].end) return;
    this.reflect(this.about.cells[i].state);
    this.onChoose(this.about.cells[i].state);
  }

  /** Show which state is looked at. */
  reflect(state) {
    this.cells.forEach((cell) => {
      const chosen = cell.dataset.state === state;
      cell.setAttribute("aria-selected", chosen);
      cell.tabIndex = chosen ? 0 : -1;
    });
    if (!this.cells.some((cell) => cell.tabIndex === 0)) this.cells[0].tabIndex = 0;
  }

  /** Show the greedy action and its score in every cell. */
  paint(states) {
    const scores = Object.values(states).map((one) => one.score);
    const [low, high] = [Math.min(...scores), Math.max(...scores)];
    this.cells.forEach((cell, i) => {
      const found = states[cell.dataset.state];
      if (!found || this.about.cells[i].end) return;
      const name = this.actions[found.greedy];
      const share = (found.score - low) / (high - low || 1);
      cell.style.backgroundColor = `rgba(var(--heat), ${(0.06 + 0.46 * share).toFixed(3)})`;
      cell.replaceChildren(h("i", { text: ARROWS[name] ?? name.slice(0, 2), "aria-hidden": "true" }));
      cell.setAttribute("aria-label", `${this.about.cells[i].label}: greedy ${name}, ${number(found.score, 3)}`);
    });
  }
}

class Numbered {
  constructor(about, onChoose) {
    const most = about.count - 1;
    const given = (event) => {
      const state = String(Math.min(Math.max(Math.round(+event.target.value) || 0, 0), most));
      this.reflect(state);
      onChoose(state);
    };
    this.range = h("input", { type: "range", min: 0, max: most, id: "state-range", oninput: given });
    this.exact = h("input", { type: "number", min: 0, max: most, "aria-label": "State", onchange: given });
    this.element = h("div", { class: "slider" }, h("label", { for: "state-range", text: `State, 0 to ${most}` }), this.range, this.exact);
    this.reflect(about.start);
  }

  reflect(state) {
    this.range.value = state;
    this.exact.value = state;
  }

  paint() {}
}

class Sliders {
  constructor(about, onChoose) {
    this.rows = about.entries.map((entry, i) => {
      const step = (entry.high - entry.low) / 400 || "any";
      const given = (event) => {
        if (!isFinite(parseFloat(event.target.value))) return;
        this.values[i] = parseFloat(event.target.value);
        this.show(i);
        onChoose(this.values.join(","));
      };
      const range = h("input", { type: "range", min: entry.low, max: entry.high, step, id: `entry-${i}`, oninput: given });
      const exact = h("input", { type: "number", step: "any", "aria-label": `${entry.label}, exact value`, onchange: given });
      return { range, exact, element: h("div", { class: "slider" }, h("label", { for: `entry-${i}`, text: entry.label }), range, exact) };
    });
    this.element = h("div", { class: "sliders" }, this.rows.map((row) => row.element));
    this.values = about.entries.map((entry) => entry.value);
    this.rows.forEach((_, i) => this.show(i));
  }

  show(i) {
    const { range, exact } = this.rows[i];
    const value = this.values[i];
    // An observation beyond the slider's ends widens it.
    if (value < +range.min) range.min = value;
    if (value > +range.max) range.max = value;
    range.value = value;
    exact.value = +value.toPrecision(5);
  }

  reflect(state) {
    const values = state.split(",").map(Number);
    if (values.length !== this.values.length || !values.every(isFinite)) return;
    this.values = values;
    this.rows.forEach((_, i) => this.show(i));
  }

  paint() {}
}

/** Return what chooses a state: `element`, `reflect(state)`, `paint(map)`; null for pictures. */
export function picker(about, actions, onChoose) {
  if (about.kind === "grid") return new Grid(about, actions, onChoose);
  if (about.kind === "number") return new Numbered(about, onChoose);
  if (about.kind === "sliders") return new Sliders(about, onChoose);
  return null;
}

export const TITLES = { grid: "Grid", number: "State", sliders: "Values" };
