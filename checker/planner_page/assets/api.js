/** What the page asks of its server; `checker/planner_page/handlers.py` has the answers. */

import { readLines } from "./lines.js";

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
  return readLines(answer, progress, "the question ended without an answer; is the planner still running?");
}
