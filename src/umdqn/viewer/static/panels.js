// Density, distribution function and quantile function of all actions, and their numbers.

import { h, colour, dash, number, swatch } from "./dom.js";
import { Chart } from "./chart.js";
import { get, set } from "./state.js";

const ALPHAS = ["0.05", "0.1", "0.25", "0.5"];
const percent = (share) => `${+(100 * share).toFixed(1)}%`;
// A law whose density is this many times higher than all others is cut.
const SPIKE = 4;

export class Panels {
  constructor(actions, decision) {
    Object.assign(this, { actions, decision, exact: null, data: null });
    this.alpha = ALPHAS.includes(get("alpha")) ? get("alpha") : "0.1";
    const focus = actions.indexOf(get("focus"));
    this.focused = focus < 0 ? null : focus;
    this.pdf = new Chart({ height: 250, x: "return", y: "density" });
    this.cdf = new Chart({ height: 210, x: "return", y: "cumulative probability" });
    this.qf = new Chart({ height: 210, x: "quantile fraction", y: "return" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Action in front" });
    this.below = h("p", { class: "faint" });
    this.charts = h("div", {}, h("div", { class: "head" }, h("h3", { text: "Density (PDF)" }), h("div", { class: "push" }, this.chips)), this.pdf.element,
      h("div", { class: "pair" }, h("div", {}, h("h3", { text: "Distribution function (CDF)" }), this.cdf.element), h("div", {}, h("h3", { text: "Quantile function (QF)" }), this.qf.element)), this.below);
    this.table = h("div", { class: "scroll" });
  }

  /** The action in front: the one that was clicked, else the greedy one. */
  get front() {
    return this.focused ?? this.data.greedy;
  }

  focus(action) {
    this.focused = this.focused === action || (this.focused === null && action === this.data.greedy) ? null : action;
    set({ focus: this.focused === null ? null : this.actions[this.focused] });
    this.show(this.data);
  }

  show(data, exact = this.exact) {
    Object.assign(this, { data, exact });
    this.charts.hidden = data.expectations;
    if (!data.expectations) this.draw();
    this.numbers();
  }

  draw() {
    const { laws, fractions } = this.data;
    const truth = this.exact?.laws ?? [];
    const bounds = [this.data.range, ...(this.exact?.range ? [this.exact.range] : [])];
    const range = [Math.min(...bounds.map(([low]) => low)), Math.max(...bounds.map(([, high]) => high))];
    const front = this.front;
    const order = laws.map((_, i) => i).sort((a, b) => (a === front) - (b === front));
    const style = (i) => ({ colour: colour(i), dash: dash(i), width: i === front ? 2.4 : 1.5, opacity: i === front ? 1 : 0.8 });
    const lines = (field) => order.map((i) => ({ name: this.actions[i], x: laws[i].z, y: laws[i][field], ...style(i) }));
    const dotted = (field, x = "z") => truth.map((law, i) => ({ x: x === "z" ? law.z : fractions, y: law[field] ?? [], colour: colour(i), dash: "1.5 3.5", width: 1.8, class: "exact" })).filter((line) => line.y.length);
    const chosen = laws[front];
    const worst = chosen.qf[fractions.findIndex((one) => Math.abs(one - this.alpha) < 1e-9)];
    const marks = [{ x: chosen.mean, colour: colour(front), label: "mean", class: "mean" }, { x: chosen.cvar[this.alpha], colour: colour(front), dash: "5 3", label: `CVaR ${percent(this.alpha)}`, class: "cvar" }];
    const peaks = [...laws, ...truth].map((law) => Math.max(0, ...(law.pdf ?? []).filter((one) => one !== null))).sort((a, b) => b - a);
    const top = Math.min(peaks[0], SPIKE * (peaks[1] || peaks[0])) * 1.06 || 1;
    const density = lines("pdf");
    density.at(-1).fills = [{ from: -Infinity, to: Infinity, opacity: 0.1 }, { from: -Infinity, to: worst, opacity: 0.25 }];
    const told = this.sentence();
    this.pdf.draw({ lines: [...density, ...dotted("pdf")], marks, xDomain: range, yDomain: [0, top], label: `Densities. ${told}` });
    this.cdf.draw({ lines: [...lines("cdf"), ...dotted("cdf")], marks: [], xDomain: range, yDomain: [0, 1], label: `Distribution functions. ${told}` });
    this.qf.draw({ lines: [...order.map((i) => ({ name: this.actions[i], x: fractions, y: laws[i].qf, ...style(i) })), ...dotted("qf", "fractions")], marks: [], xDomain: [0, 1], yDomain: range, label: `Quantile functions. ${told}` });
    this.chips.replaceChildren(...this.actions.map((name, i) => h("button", { type: "button", class: "chip", "aria-pressed": String(i === front), onclick: () => this.focus(i) }, swatch(i), h("span", { text: name }), i === this.data.greedy && h("em", { text: "greedy" }))));
    const cut = peaks[0] * 1.06 > top ? " One density is higher than the panel." : "";
    this.below.textContent = `${truth.length ? `Dotted: exact laws of ${this.exact.policy}. ` : ""}Shaded: ${this.actions[front]}, its worst ${percent(this.alpha)} darker.${cut}`;
  }

  /** What the panels show, in words. */
  sentence() {
    const { laws, greedy } = this.data;
    return laws.map((law, i) => `${this.actions[i]}${i === greedy ? " (greedy)" : ""}: mean ${number(law.mean)}, 90% between ${number(law.quantiles["0.05"])} and ${number(law.quantiles["0.95"])}`).join("; ");
  }

  numbers() {
    const { laws, greedy, expectations } = this.data;
    const truth = this.exact?.laws ?? [];
    const scored = this.decision !== "mean" && !expectations;
    const choice = h("select", { "aria-label": "Share of worst returns of CVaR", onchange: (event) => { this.alpha = event.target.value; set({ alpha: this.alpha === "0.1" ? null : this.alpha }); this.show(this.data); } }, ...ALPHAS.map((one) => h("option", { value: one, text: percent(one) })));
    choice.value = this.alpha;
    const columns = [["mean", (law) => law.mean]];
    if (!expectations) columns.push(["std", (law) => law.std], ["5%", (law) => law.quantiles["0.05"]], ["median", (law) => law.quantiles["0.5"]], ["95%", (law) => law.quantiles["0.95"]], ["CVaR ", (law) => law.cvar[this.alpha]]);
    if (scored) columns.push([`score (${this.decision})`, (law) => law.score]);
    const head = columns.map(([name]) => h("th", { scope: "col", class: "num", text: name }, name === "CVaR " ? choice : null));
    const cell = ([name, of], law, i) => h("td", { class: "num", "data-value": of(law), "data-name": name.trim(), text: number(of(law)) }, truth[i] && of(truth[i]) !== undefined ? h("small", { text: `exact ${number(of(truth[i]))}` }) : null);
    const rows = laws.map((law, i) => h("tr", { class: i === this.front ? "focus" : null, "data-action": this.actions[i] },
      h("th", { scope: "row" }, h("button", { type: "button", onclick: () => this.focus(i) }, swatch(i), this.actions[i], i === greedy && h("em", { text: "greedy" }))), ...columns.map((one) => cell(one, law, i))));
    const held = document.activeElement?.closest?.(".numbers") && document.activeElement;
    const [again, index] = [held?.tagName, held ? [...this.table.querySelectorAll(held.tagName)].indexOf(held) : -1];
    this.table.replaceChildren(h("table", { class: "numbers" }, h("caption", { class: "unseen", text: "Numbers of the laws of all actions" }), h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "Action" }), ...head)), h("tbody", {}, ...rows)));
    if (index >= 0) this.table.querySelectorAll(again)[index]?.focus();
  }
}
