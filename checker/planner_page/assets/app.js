/** The page of the planner: sets of files, a question, and the answer. */
import { byId, copy, copyButton, counted, make, tell } from "./dom.js";
import { filledIn, showFields } from "./fields.js";
import { ask, askLines } from "./server.js";
import { fileSet } from "./sets.js";

const COMMAND = /^(?!\w+: )\S+\s/; // code within a line that is a command: some words, and no key with its value
const CHANGED = "The question has changed since; judge it again.";
const sets = Object.fromEntries(["before", "after", "now"].map((name) => [name, fileSet(name, refuse)]));
/** @typedef {import("./sets.js").UploadedFile} UploadedFile */
/** @type {import("./fields.js").Field[]} */
let fields = [];
/** @type {AbortController | null} */
let asked = null;

byId("question").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (asked) return;
  asked = new AbortController();
  const begun = Date.now();
  const tick = () => { byId("clock").textContent = `${Math.round((Date.now() - begun) / 1000)} s`; };
  const clock = setInterval(tick, 250);
  let answer = null;
  busy(true);
  tick();
  const body = question();
  try {
    answer = await askLines("/api/plan", body, asked.signal, ({ runs, now }) => {
      byId("progress").textContent = `${counted(runs, "question")} answered; now: ${now}`;
    });
  } catch (error) {
    if (error.name !== "AbortError") refuse(error.message, error.field);
  } finally {
    clearInterval(clock);
    busy(false);
    asked = null;
  }
  if (!answer) return;
  showAnswer(answer, body);
  if (JSON.stringify(question()) !== JSON.stringify(body)) byId("kept").textContent = CHANGED;
});
byId("cancel").addEventListener("click", () => asked?.abort());
byId("question").addEventListener("input", () => { byId("kept").textContent = CHANGED; });
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault()); // beside the sets
ask("/api/fields").then((given) => showFields((fields = given)), (error) => tell(error.message, "bad"));

/** The question, as the server takes it. */
function question() {
  const files = Object.entries(sets).map(([name, set]) => [name, set.files()]);
  return { ...Object.fromEntries(files), options: filledIn(fields) };
}

/**
 * Show an error beside the field that it is about, or above everything.
 * @param {string} text
 * @param {string} [field]
 */
function refuse(text, field) {
  const place = field ? document.querySelector(`[data-field="${field}"]`) : null;
  if (!place) return tell(text, "bad");
  const error = place.querySelector(".error");
  error.textContent = text;
  error.hidden = false;
  place.closest("details")?.setAttribute("open", "");
  const input = place.querySelector("button, input, select");
  input.setAttribute("aria-invalid", "true");
  input.focus();
  error.scrollIntoView({ block: "nearest" });
}

/** @param {boolean} on */
function busy(on) {
  byId("judge").disabled = on;
  byId("cancel").hidden = !on;
  for (const id of ["clock", "progress"]) byId(id).textContent = "";
  if (!on) return;
  tell("");
  byId("answer").hidden = true;
  for (const error of document.querySelectorAll(".error")) error.hidden = true;
  for (const input of document.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}

/**
 * @param {{verdict: string, html: string, markdown: string, command: string, kept: boolean}} answer
 * @param {Record<string, UploadedFile[]>} body  the question
 */
function showAnswer(answer, { before, after, now }) {
  // The server has escaped all text, and the policy of the page lets no script in it run.
  const parsed = new DOMParser().parseFromString(answer.html, "text/html");
  byId("plan").replaceChildren(...parsed.body.childNodes);
  byId("plan").dataset.verdict = answer.verdict;
  byId("kept").textContent = answer.kept ? "This question was answered before; the answer is kept on this machine." : "";
  byId("copy").onclick = () => copy(answer.markdown, byId("copy"));
  byId("command").textContent = answer.command;
  const texts = new Map(Object.entries({ before, after, now }).flatMap(([set, each]) => each.map(({ name, text }) => [`${set}/${name}`, text])));
  offerCopies(texts);
  byId("answer").hidden = false;
  byId("answer").focus();
}

/**
 * A button beside each command, each block of lines, and each name of a file that was given. A link at each option leads
 * to its field.
 * @param {Map<string, string>} texts
 */
function offerCopies(texts) {
  for (const button of byId("answer").querySelectorAll(".copy")) button.remove();
  for (const block of byId("answer").querySelectorAll("pre")) {
    block.before(copyButton(() => block.textContent.trimEnd(), "Copy these lines"));
  }
  for (const code of byId("plan").querySelectorAll("code")) {
    const field = [...fields, { name: "now", label: "Now" }].find(({ name }) => code.textContent === `--${name}`);
    if (field) code.replaceWith(make("a", { href: `#${field.name}`, title: field.label }, code.cloneNode(true)));
  }
  for (const code of byId("plan").querySelectorAll(":not(td, pre) > code")) {
    const file = texts.get(code.textContent);
    if (file !== undefined) code.after(" ", copyButton(() => file, `Copy the text of ${code.textContent}`, "Copy file"));
    if (file !== undefined || !COMMAND.test(code.textContent)) continue;
    code.classList.add("command");
    code.before(copyButton(() => code.textContent, "Copy this command"));
  }
}
