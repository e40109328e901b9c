"use strict";
// Walks the steps of the page with the keyboard or the pointer; the address then leads to the step. The page is whole
// without this.
(() => {
  const rows = [...document.querySelectorAll("tr[data-step]")];
  const last = rows.length - 1;
  const named = () => {
    const found = /^#step-(\d+)$/.exec(location.hash);
    return found ? Math.min(Number(found[1]), last) : null;
  };
  let current = null;
  const show = (step, scroll) => {
    current = step;
    for (const each of document.querySelectorAll("[data-step]")) {
      each.classList.toggle("selected", Number(each.dataset.step) === step);
    }
    if (scroll) document.getElementById(`step-${step}`).scrollIntoView({ block: "center" });
  };
  const go = (step, scroll) => {
    const to = Math.max(0, Math.min(last, step));
    history.replaceState(null, "", `#step-${to}`);
    show(to, scroll);
  };
  const moves = {
    ArrowDown: () => (current === null ? 0 : current + 1),
    j: () => (current === null ? 0 : current + 1),
    ArrowUp: () => (current === null ? last : current - 1),
    k: () => (current === null ? last : current - 1),
    Home: () => 0,
    End: () => last,
  };
  document.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    go(move(), true);
  });
  document.addEventListener("click", (event) => {
    const at = event.target.closest("[data-step]");
    if (!at || event.target.closest("summary")) return;
    if (event.target.closest("a")) event.preventDefault();
    go(Number(at.dataset.step), false);
  });
  addEventListener("hashchange", () => {
    const step = named();
    if (step !== null) show(step, true);
  });
  document.documentElement.classList.add("live");
  if (named() !== null) show(named(), true);
})();
