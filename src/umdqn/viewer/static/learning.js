// Learning curves with bands over seeds: of one run, or of several.

import { h, colour, dash, number, whole, swatch, note } from "./dom.js";
import { ask, latest } from "./api.js";
import { Chart } from "./chart.js";
import { get, set } from "./state.js";

const NAMES = {
  return_mean: "Return of evaluation episodes",
  return_std: "Spread of returns within an evaluation (std)",
  discounted_mean: "Discounted return of evaluation episodes",
  train_return_mean: "Return of training episodes",
  train_episodes: "Training episodes between evaluations",
  loss_mean: "Loss",
  clipped_share: "Share of clipped gradients",
  edge_mass: "Mass at the edges of supports",
};

/** The lowest and highest value of some arrays, with a margin. */
export function extent(arrays, margin = 0.06) {
  let [low, high] = [Infinity, -Infinity];
  for (const array of arrays) for (const value of array) {
    if (value === null) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  const room = margin && ((high - low) * margin || Math.abs(high) * 0.1 || 0.5);
  return [low - room, high + room];
}

/** A card with curves. `runs` are ids; `onPick(step)` is told which step was clicked. */
export class Learning {
  constructor(runs, { title = "Learning", onPick = null, env = null, grouped = () => false } = {}) {
    Object.assign(this, { runs, env, grouped, marked: null });
    this.field = get("field", "return_mean");
    this.zoom = get("zoom")?.split(",").map(Number).filter(isFinite) ?? null;
    if (this.zoom?.length !== 2) this.zoom = null;
    this.chart = new Chart({ height: 250, x: "steps", y: "return", onPick, onZoom: (low, high) => this.zoomed([Math.round(low), Math.round(high)]) });
    this.choice = h("select", { "aria-label": "What is drawn", onchange: (event) => { this.field = event.target.value; set({ field: this.field === "return_mean" ? null : this.field }); this.refresh(); } });
    this.reset = h("button", { type: "button", class: "quiet", text: "Whole run", hidden: !this.zoom, onclick: () => this.zoomed(null) });
    this.legend = h("div", { class: "row" });
    this.below = h("p", { class: "faint" });
    this.problem = h("div");
    this.element = h("section", { class: "card learning", "aria-label": title },
      h("div", { class: "head" }, h("h2", { text: title }), this.choice, this.reset, h("div", { class: "push" }, this.legend)), this.problem, this.chart.element, this.below);
    this.refresh = latest(() => this.load());
  }

  zoomed(zoom) {
    this.zoom = zoom;
    this.reset.hidden = !zoom;
    set({ zoom: zoom ? zoom.join(",") : null });
    this.refresh();
  }

  /** Mark the step of a checkpoint. */
  mark(step) {
    this.marked = step;
    if (this.data) this.show();
  }

  async load() {
    const [from, to] = this.zoom ?? [null, null];
    const points = Math.min(Math.max(Math.round(this.chart.element.clientWidth / 2), 100), 1000);
    try {
      this.data = await ask("curves", { run: this.runs, field: this.field, from, to, points, group: this.grouped() ? "settings" : "runs" });
      this.problem.replaceChildren(...(this.data.damaged ? [note(`${this.data.damaged} damaged ${this.data.damaged === 1 ? "line" : "lines"} of the records are left out.`, "warn")] : []));
    } catch (error) {
      this.problem.replaceChildren(note(error.message, "bad"));
      return;
    }
    const known = [...this.choice.options].map((option) => option.value).join();
    if (known !== this.data.fields.join()) {
      this.choice.replaceChildren(...this.data.fields.map((field) => h("option", { value: field, text: NAMES[field] ?? field.replaceAll("_", " ") })));
    }
    this.choice.value = this.field;
    this.choice.hidden = !this.data.fields.length;
    this.show();
  }

  title(series) {
    const several = series.runs.length > 1 ? ` (${series.runs.length} runs)` : "";
    return this.runs.length === 1 ? series.agent : this.grouped() ? `${series.agent}${several}` : series.name;
  }

  show() {
    const series = this.data.series;
    const lines = series.map((one, i) => ({ name: this.title(one), x: one.steps, y: one.mean, low: one.seeds > 1 || one.evaluations > one.steps.length ? one.low : null, high: one.high, colour: colour(i), dash: dash(i), width: 2 }));
    const marks = this.marked === null ? [] : [{ x: this.marked, colour: "var(--text)", width: 1.2, label: "checkpoint" }];
    const [low, high] = extent(series.map((one) => one.steps), 0);
    const xDomain = this.zoom ?? [Math.min(0, low), Math.max(high, this.marked ?? 0)];
    this.chart.draw({ lines, marks, xDomain, yDomain: extent(series.flatMap((one) => [one.low, one.high])), label: this.summary(series) });
    this.legend.replaceChildren(...(series.length > 1 ? series.map((one, i) => h("span", { class: "row" }, swatch(i), h("span", { text: this.title(one) }))) : []));
    this.below.textContent = this.explained(series);
  }

  explained(series) {
    if (!series.some((one) => one.steps.length)) return "No evaluation yet: the curve begins with the first one.";
    const seeds = Math.max(...series.map((one) => one.seeds));
    const merged = series.some((one) => one.evaluations > one.steps.length);
    const line = seeds > 1 ? `Line: mean over ${seeds === Math.min(...series.map((one) => one.seeds)) ? seeds : `up to ${seeds}`} seeds; band: from the lowest to the highest seed.` : "One seed: no band.";
    return `${line}${merged ? " Neighbouring evaluations are drawn together; bands hold all of them. Drag to look closer." : ""}`;
  }

  summary(series) {
    const each = series.filter((one) => one.steps.length).map((one) => `${this.title(one)}: ${one.evaluations} evaluations, the last at step ${whole(one.steps.at(-1))}, ${number(one.mean.at(-1))}`);
    return `${NAMES[this.field] ?? this.field}. ${each.join("; ")}`;
  }
}
