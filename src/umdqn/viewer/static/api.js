// Questions to the server.

export class Failure extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function url(name, query) {
  const pairs = Object.entries(query).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value]).filter((one) => one !== null && one !== undefined).map((one) => [key, one]));
  return `api/${name}?${new URLSearchParams(pairs)}`;
}

/** Ask a question; raises `Failure` with one line that can be shown. */
export async function ask(name, query = {}, signal = undefined) {
  let answer;
  try {
    answer = await fetch(url(name, query), { signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure("the server of this page does not answer: is umdqn view still running?", 0);
  }
  const data = await answer.json().catch(() => ({ error: `the server answered with status ${answer.status}` }));
  if (!answer.ok) throw new Failure(data.error ?? `status ${answer.status}`, answer.status);
  return data;
}

/**
 * Make a function of which only the latest call counts: while one is answered, later calls wait,
 * and all but the last of these are dropped. The server is never asked what nobody waits for.
 */
export function latest(work) {
  let running = false;
  let waiting = null;
  return async function call(...given) {
    if (running) {
      waiting = given;
      return;
    }
    running = true;
    try {
      await work(...given);
    } finally {
      running = false;
      if (waiting) {
        const next = waiting;
        waiting = null;
        call(...next);
      }
    }
  };
}

/** Call a function every so often while the page is visible, until told to stop. */
export function every(milliseconds, work) {
  let stopped = false;
  let timer = null;
  async function turn() {
    clearTimeout(timer);
    if (stopped) return;
    if (!document.hidden) await work();
    if (!stopped) timer = setTimeout(turn, milliseconds);
  }
  const seen = () => !document.hidden && turn();
  document.addEventListener("visibilitychange", seen);
  timer = setTimeout(turn, milliseconds);
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
