// One run: facts, learning curves, laws, trust, settings.

import { h, ago, duration, note, number, whole } from "./dom.js";
import { ask, every } from "./api.js";
import { flat, written } from "./compare.js";
import { Laws } from "./laws.js";
import { Learning } from "./learning.js";
import { status } from "./runs.js";
import { Trust } from "./trust.js";

function facts(run) {
  const told = [
    ["Step", run.steps ? `${whole(run.step)} of ${whole(run.steps)}` : "–"],
    ["Steps/s, all seeds", run.rate === null ? "–" : whole(run.rate)],
    ["Last score", number(run.score)],
    ["Seeds", whole(run.seeds)],
    ...(run.status === "running" && run.remaining !== null ? [["Time left", duration(run.remaining)]] : []),
    ["Updated", ago(run.updated)],
  ];
  return told.map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", { text: value })));
}

function settings(info) {
  const rows = flat(info.config).map(([name, value]) => h("tr", {}, h("td", {}, h("code", { text: name })), h("td", { text: written(value) })));
  const versions = Object.entries(info.versions).map(([name, version]) => `${name} ${version}`).join(", ");
  return h("details", { class: "card" }, h("summary", { text: "Settings" }), h("p", { class: "faint", text: `${info.path} · ${versions}` }), h("div", { class: "scroll" }, h("table", { class: "settings" }, h("caption", { class: "unseen", text: "Settings" }), h("tbody", {}, rows))));
}

export function showRun({ main, trail, live }, id) {
  const title = h("h1");
  const badge = h("span");
  const about = h("p", { class: "faint" });
  const list = h("dl", { class: "facts" });
  const problem = h("div", {}, note("Reading the run…", "later"));
  const top = h("header", {}, h("div", { class: "row" }, title, badge), about, list);
  let [laws, learning, trust, shown] = [null, null, null, null];
  main.append(problem, top);

  function begin(info) {
    learning = new Learning([id], { onPick: (step) => laws.near(step) });
    trust = new Trust(id, () => laws.shown);
    laws = new Laws(info, (step) => learning.mark(step));
    main.append(learning.element, laws.element, trust.element, settings(info));
  }

  async function refresh() {
    let info;
    try {
      info = await ask("run", { run: id });
    } catch (error) {
      const gone = error.status !== 0;
      problem.replaceChildren(note(error.message, "bad"));
      live(gone ? "" : "not connected", true);
      if (!shown) trail([{ text: "Runs", to: "./" }, { text: "Run" }]);
      return;
    }
    const { run } = info;
    problem.replaceChildren(...(run.error ? [note(run.error, "bad")] : []));
    live("");
    if (!shown) trail([{ text: "Runs", to: "./" }, { text: run.name }]);
    title.textContent = run.name;
    badge.replaceChildren(status(run));
    about.textContent = `${run.agent} on ${run.env}, preset ${run.preset}`;
    list.replaceChildren(...facts(run));
    if (!shown) begin(info);
    laws.follow(info.checkpoints);
    trust.show(info.trust);
    const now = JSON.stringify([run.step, run.score, run.status, run.updated]);
    if (now !== shown) learning.refresh();
    shown = now;
  }

  refresh();
  const stop = every(2000, refresh);
  return () => {
    stop();
    laws?.leave();
  };
}
