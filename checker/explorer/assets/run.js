/** The run so far: the picture that every trace has, what it ends in, and each property at its end. */
import { byId, counted, make } from "./dom.js";
import { said } from "./language.js";

/** @typedef {import("./api.js").View} View */
/** @typedef {import("./api.js").Finding} Finding */

const SVG = "http://www.w3.org/2000/svg";

/** The sign of each truth, which is that of the picture, and its words in English and in Chinese. */
const TRUTHS = {
  holds: ["✓", "holds", "成立"],
  fails: ["✗", "fails", "不成立"],
  trivial: ["·", "says nothing here", "此处无从判断"],
  witnessed: ["★", "witnessed", "已见证"],
  "not witnessed": ["–", "not witnessed", "未见证"],
  reached: ["●", "has its goal", "达到目标"],
  open: ["○", "wants its goal", "目标未达到"],
};

/**
 * @param {View} view
 * @param {number} ahead  how many moves may be taken forward again
 */
export function showRun(view, ahead) {
  const steps = view.path.length;
  const place = steps ? said(counted(steps, "move"), `${steps} 步`) : said("the first state", "初始状态");
  byId("place").textContent = ahead ? said(`${place}, ${ahead} more forward`, `${place}，还可前进 ${ahead} 步`) : place;
  byId("findings").replaceChildren(...view.findings.map(banner));
  showPicture(view.picture);
}

/** @param {string} svg */
function showPicture(svg) {
  const place = byId("picture");
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const picture = /** @type {any} */ (document.importNode(parsed, true));
  const width = Number(picture.getAttribute("width"));
  const heads = headsOf(picture, width);
  heads.style.minWidth = picture.style.minWidth = `${width}px`; // its letters have 12 px at this width
  place.replaceChildren(heads, picture);
  place.onscroll = () => showHeads(place, heads, picture);
  showEnd();
  place.onscroll();
}

/**
 * Bring the end of the run into sight. Above the names of the lanes there are only those of the properties, upright: the
 * panel has no room for them, and they are found by scrolling up.
 */
function showEnd() {
  const place = byId("picture");
  const [heads, picture] = place.children;
  if (!picture) return;
  const { width, height } = picture.getBoundingClientRect();
  const above = (Number(heads.dataset.top) - 3) * (width / Number(picture.getAttribute("width")));
  place.style.setProperty("--drawn", `${Math.ceil(height - above)}px`);
  place.scrollTop = place.scrollHeight;
}

/**
 * The names of the lanes once more, for the upper edge of the panel. They stay there while the picture scrolls.
 * @param {any} picture
 * @param {number} width
 */
function headsOf(picture, width) {
  const lanes = [...picture.querySelectorAll(".lane")];
  const heightOf = (lane) => Number(lane.querySelector("rect").getAttribute("y"));
  const top = Math.min(...lanes.map(heightOf));
  const strip = document.createElementNS(SVG, "svg");
  strip.setAttribute("class", "quorate-trace");
  strip.setAttribute("viewBox", `0 ${top - 3} ${width} 26`);
  const paper = document.createElementNS(SVG, "rect");
  const shape = { class: "paper", x: 0, y: top - 3, width, height: 26 };
  for (const [name, value] of Object.entries(shape)) paper.setAttribute(name, String(value));
  strip.append(paper, ...lanes.filter((lane) => heightOf(lane) === top).map((lane) => lane.cloneNode(true)));
  return make("div", { class: "heads", "aria-hidden": "true", "data-top": top }, strip);
}

/**
 * Show the names at the upper edge only while those of the picture are out of sight.
 * @param {HTMLElement} place
 * @param {any} heads
 * @param {any} picture
 */
function showHeads(place, heads, picture) {
  const scale = picture.getBoundingClientRect().width / Number(picture.getAttribute("width"));
  heads.hidden = place.scrollTop <= Number(heads.dataset.top) * scale;
}

/** The end of the run stays in sight when the window changes its size. */
new ResizeObserver(showEnd).observe(byId("picture"));

/**
 * Which step of the picture an event is about; -1 if it is about none.
 * @param {Event} event
 */
export function stepOf(event) {
  const target = /** @type {Element} */ (event.target);
  const place = target.closest("[data-step]");
  return place ? Number(place.getAttribute("data-step")) : -1;
}

/** @param {Finding} finding */
function banner(finding) {
  return make(
    "div",
    { class: finding.good ? "finding good" : "finding bad", role: finding.good ? "note" : "alert" },
    make("strong", {}, finding.headline),
    make("span", {}, told(finding.clause, finding.values)),
  );
}

/**
 * @param {string} clause
 * @param {[string, string][]} values
 */
function told(clause, values) {
  return values.length ? `${clause}: ${values.map(([name, value]) => `${name} = ${value}`).join(", ")}` : clause;
}

/**
 * The properties in their order, those that fail first, because the list can be longer than its panel.
 * @param {import("./api.js").Truth[]} properties
 */
function failingFirst(properties) {
  const fails = (each) => each.truth === "fails";
  return [...properties.filter(fails), ...properties.filter((each) => !fails(each))];
}

/**
 * @param {View} view
 * @param {import("./api.js").PropertyOfJob[]} properties
 */
export function showTruths(view, properties) {
  const meanings = new Map(properties.map((each) => [each.name, each.meaning]));
  const toldAbove = new Map(view.findings.map((found) => [found.property, found]));
  byId("truths").replaceChildren(
    ...failingFirst(view.properties).map((each) => {
      const ended = toldAbove.get(each.name);
      const never = Boolean(ended && each.truth === "open"); // the state is not wrong by itself, the run is
      const [sign, ...words] = never ? ["✗", "never on this run", "这个执行过程中永不达到"] : TRUTHS[each.truth] ?? ["?", each.truth, each.truth];
      return make(
        "li",
        { class: `truth-${never ? "fails" : each.truth.replaceAll(" ", "-")}`, title: meanings.get(each.name) ?? "" },
        make("span", { class: "sign", "aria-hidden": "true" }, sign),
        make("span", { class: "name" }, each.name, make("small", {}, ` ${each.kind}`)),
        make("span", { class: "word" }, said(words[0], words[1])),
        each.clause && !ended ? make("p", {}, told(each.clause, each.values ?? [])) : null,
      );
    }),
  );
}
