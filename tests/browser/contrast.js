() => {
  const light = (c) => c.map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
  const parts = (text) => text.match(/[\d.]+/g).map(Number);
  const behind = (each) => {
    for (; each; each = each.parentElement) {
      const [r, g, b, a = 1] = parts(getComputedStyle(each).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const own = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  return [...document.querySelectorAll("header *, main *, #message")]
    .filter((each) => own(each) && each.checkVisibility() && !each.closest("svg, option, :disabled"))
    .map((each) => {
      const ink = light(parts(getComputedStyle(each).color).slice(0, 3));
      const pair = [ink, light(behind(each))].sort((a, b) => b - a);
      return [(pair[0] + 0.05) / (pair[1] + 0.05), each.textContent.trim()];
    }).filter(([ratio]) => ratio < 4.5);
}