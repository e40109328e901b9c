/**
 * What a page asks of its server; `checker/local_page` answers. Every function throws an Error with a message
 * for the reader, and with the `field` of the page that it is about.
 */

const GONE = "the program does not answer any more; is it still running?";

/**
 * @param {string} path
 * @param {object} [body]  what is sent; without it the path is read
 * @returns {Promise<any>}
 */
export async function ask(path, body) {
  return valueOf(await fetched(path, body));
}

/**
 * Ask for work. `progress` is called for each line before the last one; aborting the signal ends the work.
 * @param {string} path
 * @param {object} body
 * @param {AbortSignal} signal
 * @param {(seen: any) => void} progress
 * @returns {Promise<any>}
 */
export async function askLines(path, body, signal, progress) {
  const answer = await fetched(path, body, signal);
  if (!answer.ok || !answer.body) return valueOf(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(gone);
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.error) throw refusal(message);
      if (message.done) return message.done;
      progress(message.progress);
    }
    if (done) throw new Error(GONE);
  }
}

/**
 * @param {string} path
 * @param {object} [body]
 * @param {AbortSignal} [signal]
 */
function fetched(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const sent = body && { method: "POST", headers, body: JSON.stringify(body), signal };
  return fetch(path, sent).catch(gone);
}

/**
 * @param {Error} error
 * @returns {never}
 */
function gone(error) {
  throw error.name === "AbortError" ? error : new Error(GONE);
}

/** @param {Response} answer */
async function valueOf(answer) {
  const value = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok || value.error) throw refusal({ error: `the server answered ${answer.status}`, ...value });
  return value;
}

/** @param {{error: string, field?: string}} message */
function refusal({ error, field = "" }) {
  return Object.assign(new Error(error), { field });
}
