/** Answers of the server as lines of JSON; `checker/local_page/server.py` (`_lines`) sends them. */

/**
 * Read lines until the last one. `progress` is called for each line before it. Throws an Error for the reader, which is
 * `ended` if there is no last line.
 * @param {Response} answer
 * @param {(seen: any) => void} progress
 * @param {string} ended
 * @returns {Promise<any>}
 */
export async function readLines(answer, progress, ended) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.error) throw new Error(message.error);
      if (message.done) return message.done;
      progress(message.progress);
    }
    if (done) throw new Error(ended);
  }
}
