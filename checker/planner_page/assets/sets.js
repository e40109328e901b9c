/** The sets of files: dropped, chosen or pasted. A set is a list of names and texts, as the server takes it. */
import { byId, counted, make } from "./dom.js";

const LARGEST = 1024 * 1024; // bytes of a file; a zoo.cfg has far fewer
const MOST = 64; // files of a set; the server takes no more
const ENTRIES = 2000; // of a folder that is dropped; a folder of configurations has far fewer
const PASSED = /(^|\/)(\.|version-2\/)/; // hidden files, and the data of a server

/** @typedef {{name: string, text: string}} UploadedFile */

/**
 * The files of one set, and its part of the page.
 * @param {string} id
 * @param {(text: string, field: string) => void} refuse
 */
export function fileSet(id, refuse) {
  const place = byId(id);
  place.append(byId("set").content.cloneNode(true));
  const [list, pasted, passed, clear] = ["ul", "textarea", ".passed", ".clear"].map((name) => place.querySelector(name));
  /** @type {UploadedFile[]} */
  let given = [];

  const draw = () => {
    const remove = (index) => () => keep(given.filter((_, other) => other !== index));
    const line = ({ name }, index) =>
      make("li", {}, make("code", {}, name), make("button", { type: "button", "aria-label": `Remove ${name}`, onclick: remove(index) }, "×"));
    list.replaceChildren(...withoutCommonFolder(given).map(line));
    clear.hidden = !given.length;
    place.dispatchEvent(new Event("input", { bubbles: true })); // the question is another one
  };
  const keep = (/** @type {UploadedFile[]} */ files) => {
    given = files;
    passed.hidden = true;
    draw();
    place.querySelector("button").focus(); // the button that was pressed is gone
  };
  const add = async (/** @type {() => Promise<{name: string, file: File}[]>} */ find) => {
    try {
      const found = await find();
      // A single file was meant. A folder may have others beside those of ZooKeeper.
      const taken = found.filter(({ name, file }) => !name.includes("/") || (!PASSED.test(name) && file.size <= LARGEST));
      passed.hidden = taken.length === found.length;
      passed.textContent = `${counted(found.length - taken.length, "file")} passed over: hidden, data, or more than 1 MiB.`;
      const large = taken.find(({ file }) => file.size > LARGEST);
      if (large) throw new Error(`${large.name} has more than 1 MiB; is it a zoo.cfg or a YAML file?`);
      if (given.length + taken.length > MOST) throw new Error(`${counted(given.length + taken.length, "file")}, and ${MOST} are the most; choose the folder that has the zoo.cfg files alone`);
      given = [...given, ...(await Promise.all(taken.map(async ({ name, file }) => ({ name, text: await file.text() }))))];
      draw();
    } catch (error) {
      refuse(error.message, id);
    }
  };

  for (const [button, selector] of [[".folder", "[webkitdirectory]"], [".choose", "[multiple]"]]) {
    const chosen = place.querySelector(selector);
    place.querySelector(button).addEventListener("click", () => chosen.click());
    chosen.addEventListener("change", async () => {
      await add(async () => [...chosen.files].map((file) => ({ name: file.webkitRelativePath || file.name, file })));
      chosen.value = ""; // the same file may be chosen once more
    });
  }
  clear.addEventListener("click", () => keep([]));
  for (const kind of ["dragover", "dragleave", "drop"]) {
    place.addEventListener(kind, (event) => { event.preventDefault(); place.classList.toggle("over", kind === "dragover"); });
  }
  place.addEventListener("drop", (event) => add(() => dropped(event.dataTransfer)));
  return {
    files: () => [...withoutCommonFolder(given), ...(pasted.value.trim() ? [{ name: pastedName(pasted.value), text: pasted.value }] : [])],
  };
}

/**
 * All files of a drop, those in folders with their paths.
 * @param {DataTransfer} data
 */
async function dropped(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry);
  if (!entries.length) return [...data.files].map((file) => ({ name: file.name, file }));
  const left = { entries: ENTRIES };
  return (await Promise.all(entries.map((entry) => walked(entry, left)))).flat();
}

/**
 * @param {any} entry
 * @param {{entries: number}} left  how many more are looked at
 */
async function walked(entry, left) {
  const name = entry.fullPath.replace(/^\//, "");
  if (PASSED.test(`${name}/`) || (left.entries -= 1) < 0) {
    if (left.entries < 0) throw new Error(`more than ${ENTRIES} files; drop the folder of the zoo.cfg files alone`);
    return [];
  }
  if (entry.isFile) return [{ name, file: await new Promise((found, failed) => entry.file(found, failed)) }];
  const reader = entry.createReader();
  const inside = [];
  for (;;) {
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) break;
    inside.push(...some);
  }
  return (await Promise.all(inside.map((each) => walked(each, left)))).flat();
}

/**
 * The folder that has everything in it is the set itself.
 * @param {UploadedFile[]} files
 */
function withoutCommonFolder(files) {
  const first = files[0]?.name.split("/")[0];
  const common = files.every(({ name }) => name.startsWith(`${first}/`));
  return common ? files.map(({ name, text }) => ({ name: name.slice(first.length + 1), text })) : files;
}

/**
 * The kind of a pasted text shows in its lines: `key: value` and `- item` are YAML, `key=value` is a zoo.cfg.
 * @param {string} text
 */
function pastedName(text) {
  const lines = text.split("\n").filter((line) => line.trim() && !line.trim().startsWith("#"));
  const yaml = lines.filter((line) => /^\s*(- |---|[\w.\/-]+:(\s|$))/.test(line)).length;
  return yaml * 2 > lines.length ? "pasted.yaml" : "zoo.cfg";
}
