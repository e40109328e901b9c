/** The page of the planner: two sets of files, a question, and the answer. */
import { ask } from "./api.js";
import { byId, counted, tell } from "./dom.js";
import { fileSet } from "./sets.js";

const refuse = (/** @type {string} */ text) => tell(text, "bad");
const sets = { before: fileSet("before", refuse), after: fileSet("after", refuse) };
/** @type {AbortController | null} */
let asked = null;

byId("question").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (asked) return;
  asked = new AbortController();
  const begun = Date.now();
  let seen = "";
  const show = () => { byId("progress").textContent = `Judging … ${Math.round((Date.now() - begun) / 1000)} s${seen}`; };
  const clock = setInterval(show, 250);
  busy(true);
  show();
  try {
    const body = { before: sets.before.files(), after: sets.after.files() };
    const answer = await ask(body, asked.signal, ({ runs, now }) => {
      seen = `, ${counted(runs, "question")} answered; now: ${now}`;
      show();
    });
    showAnswer(answer);
  } catch (error) {
    if (error.name !== "AbortError") refuse(error.message);
  } finally {
    clearInterval(clock);
    busy(false);
    asked = null;
  }
});
byId("cancel").addEventListener("click", () => asked?.abort());
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault()); // beside the sets

/** @param {boolean} on */
function busy(on) {
  byId("judge").disabled = on;
  byId("cancel").hidden = !on;
  if (on) {
    tell("");
    byId("answer").hidden = true;
  } else byId("progress").textContent = "";
}

/** @param {import("./api.js").Answer} answer */
function showAnswer(answer) {
  // The server has escaped all text, and the policy of the page lets no script in it run.
  const parsed = new DOMParser().parseFromString(answer.html, "text/html");
  byId("plan").replaceChildren(...parsed.body.childNodes);
  byId("plan").dataset.verdict = answer.verdict;
  byId("kept").textContent = answer.kept ? "This question was answered before; the answer is kept on this machine." : "";
  byId("copy").onclick = async () => {
    await navigator.clipboard.writeText(answer.markdown);
    tell("The answer is in the clipboard.", "good");
  };
  byId("answer").hidden = false;
  byId("answer").scrollIntoView();
}
