// Whether laws can be trusted: the saved verdict, and calibration on request.

import { h, note, number, whole } from "./dom.js";
import { ask } from "./api.js";
import { Chart } from "./chart.js";

const percent = (share, digits = 0) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)}%`);

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1).replaceAll(" +- ", "\u00a0±\u00a0");

function facts(found) {
  const told = [["90% intervals cover", percent(found.coverage_90 ?? found.coverage?.["0.9"], 1)], ["Bias", number(found.bias, 3)], ["CRPS skill", number(found.crps_skill, 3)], ["Mass at edges", percent(found.edge_mass, 1)], ["Episodes", whole(found.episodes)]];
  return h("dl", { class: "facts" }, told.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value }))));
}

/** A card on calibration. `step()` says which checkpoint is shown. */
export class Trust {
  constructor(run, step) {
    Object.assign(this, { run, step });
    this.button = h("button", { type: "button", text: "Check against 200 new episodes a seed", onclick: () => this.check() });
    this.said = h("div", {});
    this.figures = h("div", {});
    this.element = h("section", { class: "card", "aria-label": "Trust" }, h("div", { class: "head" }, h("h2", { text: "Do realised returns fall where the laws say?" }), h("div", { class: "push" }, this.button)), this.said, this.figures);
  }

  /** Show the verdict that the run has saved. */
  show(saved) {
    const text = JSON.stringify(saved);
    if (this.text === text || this.report) return;
    this.text = text;
    if (!saved) this.said.replaceChildren(h("p", { class: "faint" }, "Not checked yet. The check plays the greedy policy here; it writes nothing. ", h("code", { text: "umdqn calibrate RUN --save" }), " keeps a verdict with the run."));
    else if (saved.error) this.said.replaceChildren(note(saved.error, "warn"));
    else this.said.replaceChildren(h("p", { class: "verdict", text: sentence(saved.verdict) }), h("p", { class: "faint", text: `Saved by umdqn calibrate for the checkpoint of step ${saved.steps.map(whole).join(", ")}.` }), facts(saved));
  }

  async check() {
    const step = this.step();
    this.button.disabled = true;
    this.button.textContent = "Playing episodes…";
    try {
      this.report = await ask("calibration", { run: this.run, step, episodes: 200 });
      this.draw(this.report);
    } catch (error) {
      this.figures.replaceChildren(note(error.message, "bad"));
    }
    this.button.disabled = false;
    this.button.textContent = "Check against 200 new episodes a seed";
  }

  draw(found) {
    this.said.replaceChildren(h("p", { class: "verdict", text: sentence(found.verdict) }), h("p", { class: "faint", text: `Checkpoint of step ${whole(found.step)}, ${whole(found.episodes)} episodes over ${found.seeds} ${found.seeds === 1 ? "seed" : "seeds"}.` }), facts(found));
    const transforms = new Chart({ height: 210, x: "share of the law below the realised return", y: "density" });
    const coverage = new Chart({ height: 210, x: "central interval of the law", y: "returns inside" });
    const groups = new Chart({ height: 210, x: "tenth of steps, worst to best prediction", y: "return" });
    const panel = (title, chart, below) => h("div", {}, h("h3", { text: title }), chart.element, h("p", { class: "faint", text: below }));
    this.figures.replaceChildren(h("div", { class: "three" },
      panel("Where returns fall in their laws", transforms, "Flat is right. Grey: two standard errors around it."),
      panel("Coverage", coverage, "On the diagonal is right; bars: two standard errors."),
      panel("Laws and returns", groups, "Mean and central 90%: laws orange, realised returns blue.")));
    this.figures.style.marginTop = "16px";
    this.transforms(transforms, found);
    this.coverage(coverage, found);
    this.groups(groups, found);
  }

  transforms(chart, found) {
    const count = found.pit.length;
    const error = 2 * Math.sqrt((count - 1) / found.effective_episodes);
    const bars = found.pit.map((share, i) => ({ from: i / count, to: (i + 1) / count, value: share * count, colour: "var(--c0)" }));
    const lines = [{ x: [0, 1], y: [1, 1], colour: "var(--text)", dash: "2 3", width: 1.2 }];
    const top = Math.max(2, ...bars.map((bar) => bar.value * 1.1));
    chart.draw({ bars, lines, spans: [{ low: Math.max(1 - error, 0), high: Math.min(1 + error, top), colour: "var(--text)" }], xDomain: [0, 1], yDomain: [0, top], label: `Where returns fall in their laws: ${percent(found.below_median)} below the median` });
  }

  coverage(chart, found) {
    const levels = Object.keys(found.coverage).map(Number).sort((a, b) => a - b);
    const of = (level, name) => found[name][String(level)];
    const dots = levels.map((level) => ({ x: level, y: of(level, "coverage"), low: of(level, "coverage") - 2 * of(level, "coverage_error"), high: of(level, "coverage") + 2 * of(level, "coverage_error"), colour: "var(--c0)" }));
    const low = Math.min(0.4, ...dots.map((dot) => dot.low));
    chart.draw({ dots, lines: [{ x: [0, 1], y: [0, 1], colour: "var(--text)", dash: "2 3", width: 1.2 }], xDomain: [0.4, 1.02], yDomain: [low, 1.03], label: levels.map((level) => `${percent(level)} intervals cover ${percent(of(level, "coverage"))}`).join("; ") });
  }

  groups(chart, found) {
    const kinds = [["predicted", "var(--c1)", -0.12], ["realised", "var(--c0)", 0.12]];
    const dots = kinds.flatMap(([kind, colour, shift]) => found.groups.map((group, i) => ({ x: i + 1 + shift, y: group[kind], low: group[`${kind}_low`], high: group[`${kind}_high`], colour })));
    const values = dots.flatMap((dot) => [dot.low, dot.high]);
    const room = (Math.max(...values) - Math.min(...values)) * 0.06 || 0.5;
    chart.draw({ dots, xDomain: [0.5, found.groups.length + 0.5], xTicks: found.groups.map((_, i) => i + 1), yDomain: [Math.min(...values) - room, Math.max(...values) + room], label: `Predicted mean ${number(found.predicted_mean)}, realised mean ${number(found.realised_mean)}` });
  }
}
