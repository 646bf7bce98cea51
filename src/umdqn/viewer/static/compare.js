// Several runs side by side: curves, last scores, and the settings in which they differ.

import { h, number, whole, note } from "./dom.js";
import { ask, every } from "./api.js";
import { Learning } from "./learning.js";
import { address, get, set } from "./state.js";
import { status } from "./runs.js";

/** All settings by dotted name. */
export function flat(config, prefix = "") {
  return Object.entries(config).flatMap(([name, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value) ? flat(value, `${prefix}${name}.`) : [[(prefix + name).replace(/\.name$/, ""), value]]);
}

export const written = (value) => (Array.isArray(value) ? value.join(", ") : String(value ?? "")) || "–";

function differences(runs) {
  const settings = runs.map((run) => new Map(flat(run.config)));
  const names = [...new Set(settings.flatMap((one) => [...one.keys()]))];
  return names.map((name) => [name, settings.map((one) => written(one.get(name)))]).filter(([, values]) => new Set(values).size > 1);
}

export function showComparison({ main, trail, live }, ids) {
  trail([{ text: "Runs", to: "./" }, { text: `Comparison of ${ids.length} runs` }]);
  let grouped = get("pool") === "1";
  const cards = h("div", { class: "cards" });
  const table = h("section", { class: "card", "aria-label": "Scores" });
  const settings = h("section", { class: "card", "aria-label": "Settings" });
  const problem = h("div");
  const pool = h("input", { type: "checkbox", id: "pool", checked: grouped, onchange: (event) => { grouped = event.target.checked; set({ pool: grouped ? "1" : null }); learnings.forEach((one) => one.refresh()); } });
  let learnings = [];
  main.append(h("div", { class: "head" }, h("h1", { text: "Comparison" }), h("label", { class: "row push", for: "pool" }, pool, "Pool runs that differ in their seeds only")), problem, cards, table, settings);
  cards.style.display = "grid";
  cards.style.gap = "20px";

  function begin(runs) {
    const envs = [...new Set(runs.map((one) => one.run.env))];
    learnings = envs.map((env) => new Learning(runs.filter((one) => one.run.env === env).map((one) => one.run.id), { title: env, grouped: () => grouped }));
    cards.replaceChildren(...learnings.map((one) => one.element));
  }

  function tell(runs) {
    const name = (one) => h("th", { scope: "row" }, h("a", { href: address({ run: one.run.id }, true), "data-link": true, text: one.run.name }));
    table.replaceChildren(h("div", { class: "head" }, h("h2", { text: "Scores" })), h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ...["Run", "Agent", "Environment", "Status"].map((text) => h("th", { scope: "col", text })), ...["Seeds", "Step", "Steps/s", "Last score"].map((text) => h("th", { scope: "col", class: "num", text })))),
      h("tbody", {}, ...runs.map((one) => h("tr", {}, name(one), h("td", { text: one.run.agent }), h("td", { text: one.run.env }), h("td", {}, status(one.run)),
        ...[whole(one.run.seeds), whole(one.run.step), one.run.rate === null ? "–" : whole(one.run.rate), number(one.run.score)].map((text) => h("td", { class: "num", text }))))))));
    const found = differences(runs);
    settings.replaceChildren(h("div", { class: "head" }, h("h2", { text: "Settings that differ" })), found.length ? h("div", { class: "scroll" }, h("table", { class: "settings" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col", text: "Setting" }), ...runs.map((one) => h("th", { scope: "col", text: one.run.name })))),
      h("tbody", {}, ...found.map(([setting, values]) => h("tr", {}, h("td", {}, h("code", { text: setting })), ...values.map((text) => h("td", { text }))))))) : note("All settings are equal."));
  }

  async function refresh() {
    const answers = await Promise.allSettled(ids.map((run) => ask("run", { run })));
    const runs = answers.filter((one) => one.status === "fulfilled").map((one) => one.value);
    const lost = answers.filter((one) => one.status === "rejected").map((one) => one.reason);
    problem.replaceChildren(...lost.map((error) => note(error.message, "bad")));
    live(lost.some((error) => error.status === 0) ? "not connected" : "", true);
    if (!runs.length) return;
    const shown = learnings.flatMap((one) => one.runs).sort().join();
    if (shown !== runs.map((one) => one.run.id).sort().join()) begin(runs);
    learnings.forEach((one) => one.refresh());
    tell(runs);
  }

  refresh();
  return every(3000, refresh);
}
