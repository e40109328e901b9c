() => {
  const root = document.querySelector("svg"), size = root.viewBox.baseVal, spilled = [];
  const at = (each) => each.getBoundingClientRect(), whole = at(root), name = (each) => each.textContent.slice(0, 60);
  for (const text of root.querySelectorAll("text")) {
    const box = at(text);
    if (box.left < whole.left - 1 || box.right > whole.right + 1) spilled.push(["picture", name(text)]);
    if (box.top < whole.top - 1 || box.bottom > whole.bottom + 1) spilled.push(["picture", name(text)]);
  }
  for (const group of root.querySelectorAll(".block, .lane")) {
    const frame = at(group.querySelector("rect"));
    for (const text of group.querySelectorAll("text"))
      if (at(text).right > frame.right + 1 || at(text).bottom > frame.bottom + 2) spilled.push(["box", name(text)]);
  }
  const captions = [...root.querySelectorAll(".caption, .told")];
  const lanes = Math.min(...[...root.querySelectorAll(".life")].map((each) => at(each).left));
  for (const text of captions) if (at(text).right > lanes - 8) spilled.push(["caption", name(text)]);
  const rows = [...root.querySelectorAll(".row")].map(at);
  for (const step of root.querySelectorAll(".step")) {
    const row = rows[Number(step.dataset.step)];
    if (at(step).top < row.top - 1 || at(step).bottom > row.bottom + 1) spilled.push(["row", step.dataset.step]);
  }
  const words = [...root.querySelectorAll(".label")];
  words.forEach((one, place) => words.slice(place + 1).forEach((other) => {
    const [a, b] = [at(one), at(other)];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && high > 5) spilled.push(["labels", name(one), name(other)]);
  }));
  return spilled;
}