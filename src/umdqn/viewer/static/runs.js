// The list of runs.

import { h, number, whole, duration, ago, note } from "./dom.js";
import { ask, every } from "./api.js";
import { address, get, go, set } from "./state.js";

const COLUMNS = [
  ["name", "Run", (run) => run.name.toLowerCase()],
  ["status", "Status", (run) => `${run.status}${1 - share(run)}`],
  ["rate", "Steps/s", (run) => -(run.rate ?? -1)],
  ["score", "Last score", (run) => -(run.score ?? -Infinity)],
  ["updated", "Updated", (run) => -(run.updated ?? 0)],
];
const WORDS = { quiet: "no news", damaged: "unreadable" };

const share = (run) => (run.steps ? Math.min(run.step / run.steps, 1) : 0);

/** The status of a run as a coloured word. */
export const status = (run) => h("span", { class: `status ${run.status}`, text: WORDS[run.status] ?? run.status });

function progress(run) {
  if (!run.steps) return null;
  const bar = h("i");
  bar.style.width = `${100 * share(run)}%`;
  return h("div", { class: "progress", role: "progressbar", "aria-valuenow": run.step, "aria-valuemin": 0, "aria-valuemax": run.steps, "aria-label": `steps of ${run.name}` }, bar);
}

function steps(run) {
  if (!run.steps) return run.error;
  const left = run.remaining === null ? "" : ` · ${duration(run.remaining)} left`;
  return `${whole(run.step)} of ${whole(run.steps)}${left}`;
}

function row(run, chosen, onChoose) {
  const about = run.env ? `${run.agent} on ${run.env}, ${run.seeds} ${run.seeds === 1 ? "seed" : "seeds"}` : run.error;
  return h("tr", { class: run.status, "data-run": run.id },
    h("td", { class: "pick" }, h("input", { type: "checkbox", checked: chosen, "aria-label": `Compare ${run.name}`, onchange: (event) => onChoose(run.id, event.target.checked) })),
    h("td", { class: "name" }, h("a", { href: address({ run: run.id }, true), "data-link": true, text: run.name }), h("small", { text: about })),
    h("td", { class: "status-cell" }, status(run), h("span", { class: "steps", text: run.env ? steps(run) : "" }), progress(run)),
    h("td", { class: "num rate", text: run.rate === null ? "–" : whole(run.rate) }),
    h("td", { class: "num score", text: number(run.score) }),
    h("td", { class: "num updated faint", text: ago(run.updated) }));
}

export function showRuns({ main, trail, live }) {
  trail([]);
  const chosen = new Set(get("pick", "").split(",").filter(Boolean));
  const rows = new Map();
  let runs = null;
  let text = get("find", "");
  let [column, down] = [get("sort", "updated"), get("order") === "down"];

  const find = h("input", { type: "search", placeholder: "Filter: name, agent, environment, status", "aria-label": "Filter runs", value: text, size: 42, oninput: (event) => { text = event.target.value; set({ find: text || null }); place(); } });
  const compare = h("button", { class: "main", type: "button", hidden: true, onclick: () => go(address({ compare: "1", run: [...chosen] }, true)) });
  const count = h("span", { class: "faint push" });
  const body = h("tbody");
  const heads = COLUMNS.map(([key, name]) => h("th", { scope: "col", class: ["rate", "score", "updated"].includes(key) ? "num" : null, "data-key": key },
    h("button", { type: "button", text: name, onclick: () => { down = column === key ? !down : false; column = key; set({ sort: key, order: down ? "down" : null }); place(); } })));
  const table = h("table", { class: "runs" }, h("caption", { class: "unseen", text: "Runs" }),
    h("thead", {}, h("tr", {}, h("th", { class: "pick", scope: "col" }, h("span", { class: "unseen", text: "Compare" })), ...heads)), body);
  const card = h("section", { class: "card runs-card" }, table);
  const problem = h("div", {}, note("Reading the runs…", "later"));
  main.append(h("div", { class: "head" }, h("h1", { text: "Runs" }), find, compare, count), problem, card);

  function choose(id, on) {
    if (on) chosen.add(id); else chosen.delete(id);
    set({ pick: [...chosen].join(",") || null });
    buttons();
  }

  function buttons() {
    compare.hidden = chosen.size < 2;
    compare.textContent = `Compare ${chosen.size} runs`;
  }

  function place() {
    if (!runs) return;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (run) => words.every((word) => `${run.name} ${run.agent} ${run.env} ${run.status} ${run.preset}`.toLowerCase().includes(word));
    const key = (COLUMNS.find(([name]) => name === column) ?? COLUMNS[4])[2];
    const shown = runs.filter(fits).sort((a, b) => ((key(a) > key(b)) - (key(a) < key(b))) * (down ? -1 : 1));
    body.replaceChildren(...shown.map((run) => rows.get(run.id).element));
    heads.forEach((head) => head.dataset.key === column ? head.setAttribute("aria-sort", down ? "descending" : "ascending") : head.removeAttribute("aria-sort"));
    count.textContent = shown.length === runs.length ? `${whole(runs.length)} ${runs.length === 1 ? "run" : "runs"}` : `${whole(shown.length)} of ${whole(runs.length)} runs`;
    buttons();
  }

  function empty(roots) {
    return h("div", { class: "empty" }, h("h1", { text: "No runs here yet" }),
      h("p", {}, "Looked in ", h("code", { text: roots.join(", ") }), ". Runs appear here as soon as they start:"),
      h("p", {}, h("code", { text: "umdqn train grid-world umdqn-c" })));
  }

  async function refresh() {
    let answer;
    try {
      answer = await ask("runs");
    } catch (error) {
      live("not connected", true);
      problem.replaceChildren(note(error.message, "bad"));
      return;
    }
    const running = answer.runs.filter((run) => run.status === "running").length;
    live(running ? `${running} running` : "");
    const same = new Set(answer.runs.map((run) => run.id));
    [...rows.keys()].filter((id) => !same.has(id)).forEach((id) => { rows.delete(id); chosen.delete(id); });
    for (const run of answer.runs) {
      const known = rows.get(run.id);
      const now = JSON.stringify(run) + ago(run.updated);
      if (known?.as !== now) rows.set(run.id, { as: now, element: row(run, chosen.has(run.id), choose) });
    }
    runs = answer.runs;
    problem.replaceChildren(...(answer.complete ? [] : [note("This directory is very large: only a part of it was searched for runs.", "warn")]));
    card.replaceChildren(runs.length ? table : empty(answer.roots));
    const focus = document.activeElement?.closest?.("tr")?.dataset.run;
    const inside = body.contains(document.activeElement) && document.activeElement.tagName;
    place();
    if (focus && inside && !body.contains(document.activeElement)) rows.get(focus)?.element.querySelector(inside)?.focus();
  }

  refresh();
  return every(2000, refresh);
}
