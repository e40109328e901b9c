/** What can happen next: a list of moves in groups, to filter, to look at, and to take. */
import { byId, counted, make } from "./dom.js";
import { said } from "./language.js";

/** @typedef {import("./api.js").Move} Move */

/** How a truth to which a move leads is told. */
const TURNS = {
  fails: (name) => ["bad", said(`✗ ${name} fails`, `✗ ${name} 不成立`)],
  witnessed: (name) => ["good", said(`★ ${name} is witnessed`, `★ ${name} 已见证`)],
  reached: (name) => ["good", said(`● ${name} has its goal`, `● ${name} 达到目标`)],
};

export class Moves {
  /**
   * @param {(ordinal: number) => void} take
   * @param {(move: Move | null) => void} preview
   */
  constructor(take, preview) {
    this.take = take;
    this.preview = preview;
    /** @type {Move[]} */
    this.moves = [];
    this.again = -1;
    this.quiet = false;
    /** @type {HTMLElement | null} */
    this.chosen = null;
    this.list = byId("moves");
    this.filter = byId("filter");
    this.group = byId("group");
    this.filter.addEventListener("input", () => this.draw());
    this.group.addEventListener("change", () => this.draw());
    this.list.addEventListener("pointerleave", () => this.preview(null));
    this.list.addEventListener("focusout", () => this.preview(null));
  }

  /**
   * Show the moves of a state. `again` is the ordinal that goes forward, if there is one.
   * @param {Move[]} moves
   * @param {number} again
   */
  show(moves, again) {
    const held = this.list.contains(document.activeElement);
    this.moves = moves;
    this.again = again;
    this.filter.value = "";
    this.draw();
    this.quiet = true; // what the last move has changed is of more interest than what the next one may
    if (held) this.step(1);
    this.quiet = false;
  }

  draw() {
    const words = this.filter.value.trim().toLocaleLowerCase();
    const shown = this.moves.filter((move) => textOf(move).includes(words));
    const [some, all] = [shown.length, this.moves.length];
    const count = said(counted(all, "move"), `${all} 种`);
    byId("count").textContent = words ? said(`${some} of ${count}`, `${count}中的 ${some} 种`) : count;
    /** @type {Map<string, Move[]>} */
    const groups = new Map();
    for (const move of shown) {
      const name = this.group.value === "lane" ? move.lane : move.action;
      groups.set(name, [...(groups.get(name) ?? []), move]);
    }
    this.list.replaceChildren(
      ...[...groups].map(([name, moves], place) =>
        make(
          "section",
          { "aria-labelledby": `group-${place}` },
          make("h3", { id: `group-${place}` }, name),
          make("ul", {}, ...moves.map((move) => make("li", {}, this.button(move)))),
        ),
      ),
    );
    const none = this.moves.length
      ? said("No move has these words.", "没有哪一步含有这些文字。")
      : said("Nothing can happen any more: the run ends here.", "不会再发生任何事：执行过程到此结束。");
    if (!shown.length) this.list.append(make("p", { class: "end" }, none));
    this.choose(this.buttons()[0] ?? null);
  }

  /**
   * Highlight a move: Enter takes it.
   * @param {HTMLElement | null} button
   */
  choose(button) {
    this.chosen?.removeAttribute("aria-current");
    this.chosen = button;
    button?.setAttribute("aria-current", "true");
  }

  /** @param {Move} move
   *  @param {HTMLElement} button */
  focused(move, button) {
    this.choose(button);
    if (!this.quiet) this.preview(move);
  }

  /** @param {Move} move */
  button(move) {
    return make(
      "button",
      {
        class: "move",
        "data-ordinal": move.ordinal,
        onclick: () => this.take(move.ordinal),
        onpointerenter: () => this.preview(move),
        onfocus: (event) => this.focused(move, event.currentTarget),
      },
      make("span", { class: "caption" }, move.caption),
      ...hintsOf(move, this.again).map(([kind, text]) => make("span", { class: `hint ${kind}` }, text)),
    );
  }

  buttons() {
    return [...this.list.querySelectorAll("button.move")];
  }

  /**
   * Move the focus up or down.
   * @param {number} by
   */
  step(by) {
    const buttons = this.buttons();
    const place = buttons.indexOf(document.activeElement);
    const next = place < 0 ? (by > 0 ? 0 : buttons.length - 1) : place + by;
    buttons[Math.max(0, Math.min(buttons.length - 1, next))]?.focus();
  }

  /** Take the highlighted move. The first move is highlighted until the focus moves to another one. */
  takeChosen() {
    this.chosen?.click();
  }
}

/**
 * What is told of where a move leads, as pairs of a kind and a text.
 * @param {Move} move
 * @param {number} again
 * @returns {[string, string][]}
 */
function hintsOf(move, again) {
  /** @type {[string, string][]} */
  const hints = move.turns.map(({ property, truth }) => TURNS[truth](property));
  if (move.back_to !== null) hints.push(["plain", said(`↺ as after step ${move.back_to}`, `↺ 同第 ${move.back_to} 步之后`)]);
  else if (!move.changes.length && !move.drawn.length) hints.push(["plain", said("changes nothing that is shown", "图中不变")]);
  if (move.last) hints.push(["plain", said("■ nothing can happen after it", "■ 之后不会再发生任何事")]);
  if (move.ordinal === again) hints.push(["plain", said("→ forward", "→ 前进")]);
  return hints;
}

/** @param {Move} move */
function textOf(move) {
  const hints = hintsOf(move, -1).map(([, text]) => text);
  return [move.caption, move.action, move.lane, ...move.drawn, ...hints].join("\n").toLocaleLowerCase();
}
