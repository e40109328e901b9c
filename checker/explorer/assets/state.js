/** The state at the end of the walk: a card for each lane, with what the last step changed, or what a move would. */
import { byId, make } from "./dom.js";
import { said } from "./language.js";

/** @typedef {import("./api.js").Lane} Lane */
/** @typedef {import("./api.js").Move} Move */
/** @typedef {import("./api.js").Change} Change */

/**
 * @param {Lane[]} lanes
 * @param {number} step
 * @param {Move | null} move  what would change is shown of it
 */
export function showState(lanes, step, move) {
  byId("state-title").textContent = move
    ? said("What it would change:", "这一步会改变：")
    : said(`The state after step ${step}`, `第 ${step} 步之后的状态`);
  byId("preview").textContent = move ? move.caption : "";
  byId("state").classList.toggle("previewing", Boolean(move));
  const changes = move?.changes ?? [];
  const names = [...new Set([...lanes.map((lane) => lane.name), ...changes.map((change) => change.lane)])];
  const cards = names.map((name) => {
    const lane = lanes.find((each) => each.name === name) ?? { name, fields: [], gone: [] };
    return card(lane, changes.filter((change) => change.lane === name), Boolean(move));
  });
  byId("lanes").style.setProperty("--lanes", String(cards.length));
  byId("lanes").replaceChildren(...(move?.drawn.length ? [traffic(move.drawn)] : []), ...cards);
  byId("lanes").querySelector(".would")?.scrollIntoView({ block: "nearest" });
}

/**
 * @param {Lane} lane
 * @param {Change[]} changes
 * @param {boolean} previewed
 */
function card(lane, changes, previewed) {
  const now = lane.fields.map((field) => {
    const change = changes.find((each) => each.field === field.name);
    if (change) return row(field.name, "would", change.before, change.after);
    return row(field.name, field.changed && !previewed ? "changed" : "", null, field.text);
  });
  const added = changes
    .filter((change) => change.before === null)
    .map((change) => row(change.field, "would", null, change.after));
  const gone = previewed ? [] : lane.gone.map((name) => row(name, "changed", null, null));
  const touched = changes.length || (!previewed && (lane.gone.length || lane.fields.some((field) => field.changed)));
  return make(
    "article",
    { class: touched ? "lane touched" : "lane" },
    make("h3", {}, lane.name),
    make("dl", {}, ...now, ...added, ...gone),
  );
}

/**
 * A field; `before` is what a move would replace, `after` null where it is gone.
 * @param {string} name
 * @param {string} kind
 * @param {string | null} before
 * @param {string | null} after
 */
function row(name, kind, before, after) {
  const value = after === null ? make("em", {}, said("gone", "已消失")) : kind === "would" ? make("ins", {}, after) : after;
  return make(
    "div",
    { class: kind },
    make("dt", {}, name),
    " ",
    before === null ? make("dd", {}, value) : make("dd", {}, make("del", {}, before), " → ", value),
  );
}

/** @param {string[]} drawn */
function traffic(drawn) {
  return make(
    "article",
    { class: "lane touched traffic" },
    make("h3", {}, said("messages", "消息")),
    make("ul", {}, ...drawn.map((text) => make("li", {}, text))),
  );
}
