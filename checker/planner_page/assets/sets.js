/** The two sets of files: dropped, chosen or pasted. A set is a list of names and texts, as the server takes it. */
import { byId, make } from "./dom.js";

const LARGEST = 1024 * 1024; // bytes of a file; a zoo.cfg has far fewer
const MOST = 64; // files of a set; the server takes no more

/** @typedef {{name: string, text: string}} UploadedFile */

/**
 * The files of one set, and its part of the page.
 * @param {string} id
 * @param {(text: string) => void} refuse
 */
export function fileSet(id, refuse) {
  const place = byId(id);
  const [list, chosen, pasted] = ["ul", "input", "textarea"].map((name) => place.querySelector(name));
  /** @type {UploadedFile[]} */
  let given = [];

  const draw = () => {
    const remove = (each) => () => { given = given.filter((other) => other !== each); draw(); };
    const button = (each) => make("button", { type: "button", "aria-label": `Remove ${each.name}`, onclick: remove(each) }, "×");
    list.replaceChildren(...given.map((each) => make("li", {}, make("code", {}, each.name), button(each))));
    place.querySelector(".clear").hidden = !given.length;
  };
  const add = async (/** @type {{name: string, file: File}[]} */ found) => {
    try {
      if (given.length + found.length > MOST) throw new Error(`${MOST} files are the most; give those of ZooKeeper alone`);
      const large = found.find(({ file }) => file.size > LARGEST);
      if (large) throw new Error(`${large.name} has more than 1 MiB; is it a zoo.cfg or a YAML file?`);
      const read = await Promise.all(found.map(async ({ name, file }) => ({ name, text: await file.text() })));
      given = [...given, ...withoutCommonFolder(read)];
      draw();
    } catch (error) {
      refuse(error.message);
    }
  };

  place.querySelector(".choose").addEventListener("click", () => chosen.click());
  place.querySelector(".clear").addEventListener("click", () => { given = []; draw(); });
  chosen.addEventListener("change", async () => {
    await add([...chosen.files].map((file) => ({ name: file.webkitRelativePath || file.name, file })));
    chosen.value = ""; // the same file may be chosen once more
  });
  place.addEventListener("dragover", (event) => { event.preventDefault(); place.classList.add("over"); });
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", async (event) => {
    event.preventDefault();
    place.classList.remove("over");
    try {
      await add(await dropped(event.dataTransfer));
    } catch (error) {
      refuse(`the files cannot be read (${error.message}); choose them instead`);
    }
  });
  return { files: () => (pasted.value.trim() ? [...given, { name: pastedName(pasted.value), text: pasted.value }] : given) };
}

/**
 * All files of a drop, those in folders with their paths.
 * @param {DataTransfer} data
 */
async function dropped(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry);
  if (!entries.length) return [...data.files].map((file) => ({ name: file.name, file }));
  return (await Promise.all(entries.map((entry) => walked(entry)))).flat();
}

/** @param {any} entry */
async function walked(entry) {
  if (entry.isFile) {
    const file = await new Promise((found, failed) => entry.file(found, failed));
    return [{ name: entry.fullPath.replace(/^\//, ""), file }];
  }
  const reader = entry.createReader();
  const inside = [];
  for (;;) {
    const some = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!some.length) break;
    inside.push(...some.filter((each) => !each.name.startsWith(".")));
    if (inside.length > MOST) throw new Error(`more than ${MOST} files`);
  }
  return (await Promise.all(inside.map(walked))).flat();
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
