/** What the page asks of its server; `checker/planner_page/handlers.py` has the answers. */

/** @typedef {{runs: number, now: string}} Progress */
/** @typedef {{verdict: string, recommendation: string, html: string, markdown: string, kept: boolean}} Answer */

/**
 * Judge a change. `progress` is called before each run; aborting the signal ends it. Throws an Error for the reader.
 * @param {object} body
 * @param {AbortSignal} signal
 * @param {(seen: Progress) => void} progress
 * @returns {Promise<Answer>}
 */
export async function ask(body, signal, progress) {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch("/api/plan", { method: "POST", headers, body: JSON.stringify(body), signal }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Error("the planner does not answer any more; is it still running?");
  });
  if (!answer.ok || !answer.body) {
    const value = await answer.json().catch(() => ({}));
    throw new Error(value.error ?? `the server answered ${answer.status}`);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const told = JSON.parse(line);
      if (told.error) throw new Error(told.error);
      if (told.done) return told.done;
      progress(told.progress);
    }
    if (done) throw new Error("the question ended without an answer; is the planner still running?");
  }
}
