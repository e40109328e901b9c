/** Walks as files: saved in every format, and opened again. */
import * as api from "./api.js";
import { byId, counted, make, tell } from "./dom.js";
import { ask } from "./server.js";

const LARGEST = 32 * 1024 * 1024; // bytes; the server takes no more
const SHOWN = ["text", "svg", "html", "markdown", "mermaid"]; // formats that a browser can show by itself

/** @param {(job: api.Job, path: number[]) => Promise<void>} open */
export function takeFiles(open) {
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#save")) closeMenu();
  });
  const chosen = byId("file");
  byId("open").addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", async () => {
    if (chosen.files.length) await load(chosen.files[0], open);
    chosen.value = ""; // the same file may be chosen once more
  });
  const drop = byId("drop");
  window.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    drop.hidden = false;
  });
  window.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.hidden = true;
  });
  window.addEventListener("drop", async (event) => {
    event.preventDefault();
    drop.hidden = true;
    const file = event.dataTransfer?.files[0];
    if (file) await load(file, open);
  });
}

export function closeMenu() {
  byId("save").removeAttribute("open");
}

/**
 * @param {File} file
 * @param {(job: api.Job, path: number[]) => Promise<void>} open
 */
async function load(file, open) {
  if (file.size > LARGEST) {
    tell(`${file.name} has ${counted(file.size, "byte")}; ${counted(LARGEST, "byte")} are the most`, "bad");
    return;
  }
  tell(`Replaying ${file.name} …`);
  try {
    /** @type {api.Loaded} */
    const loaded = await ask("/api/load", { name: file.name, text: await file.text() });
    await open(loaded.job, loaded.path);
    tell(`${file.name} was replayed: ${loaded.headline}; verified: ${loaded.verified.join("; ")}.`, "good");
  } catch (error) {
    tell(error.message, "bad");
  }
}

/**
 * What a walk can be saved as.
 * @param {api.View} view
 * @param {api.Format[]} formats
 */
export function offerFiles(view, formats) {
  const as = byId("as");
  as.replaceChildren(
    ...view.findings.map((found) => make("option", { value: found.property }, found.headline)),
    make("option", { value: "" }, "no finding, as it was walked"),
  );
  const line = ({ name, suffix }) => {
    const saved = { href: api.fileAddress(view, name, as.value, false), download: true };
    const shown = { href: api.fileAddress(view, name, as.value, true), target: "_blank", rel: "noopener" };
    const open = SHOWN.includes(name) ? make("a", shown, "open") : null;
    return make("li", {}, make("a", saved, `${name} (.${suffix})`), open);
  };
  const draw = () => byId("formats").replaceChildren(...formats.map(line));
  as.onchange = draw;
  draw();
}
