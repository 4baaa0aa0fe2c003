// Run inside the page by browser_test.py: what can be said of any text and any element.
function luminance(colour) {
  const linear = colour.map((value) => value / 255).map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
// Any colour as red, green, blue and alpha: a canvas knows them all.
const brush = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
function parsed(colour) {
  brush.clearRect(0, 0, 1, 1);
  brush.fillStyle = colour;
  brush.fillRect(0, 0, 1, 1);
  return [...brush.getImageData(0, 0, 1, 1).data];
}
function ratio(a, b) {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}
function backgroundOf(node) {
  for (let one = node; one; one = one.parentElement) {
    const colour = parsed(getComputedStyle(one).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255, 255];
}
// Texts that are too faint, as WCAG counts: 4.5 to 1, large ones 3 to 1.
function faintTexts() {
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let looked = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(node.tagName)) continue;
    if (node.getClientRects().length === 0) continue;
    const style = getComputedStyle(node);
    const drawn = node instanceof SVGElement;
    const ink = parsed(drawn ? style.fill : style.color);
    let behind = [backgroundOf(drawn ? node.closest('svg').parentElement : node)];
    if (node.classList.contains('cell')) {
      const fill = node.previousSibling.getAttribute('fill');
      const variable = (name) => parsed(getComputedStyle(document.documentElement).getPropertyValue(name).trim());
      behind = fill.startsWith('url') ? [variable('--soft'), variable('--line')] : [parsed(fill)];
    }
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 600) ? 3 : 4.5;
    const worst = Math.min(...behind.map((one) => ratio(ink, one)));
    looked += 1;
    if (worst < least) faint.push(`${walker.currentNode.textContent.trim().slice(0, 40)} (${node.tagName}.${node.getAttribute('class') || ''}): ${worst.toFixed(2)}`);
  }
  return { looked: looked, faint: faint };
}
// Elements that reach beyond the window, other than inside what scrolls by itself.
function tooWide() {
  const wide = [];
  for (const node of document.body.querySelectorAll('*')) {
    const box = node.getBoundingClientRect();
    if (box.width === 0 || box.right <= innerWidth + 1) continue;
    if (node.closest('.scroll, nav#toc ol, .skip')) continue;
    wide.push(`${node.tagName}.${node.getAttribute('class') || ''} to ${Math.round(box.right)}`);
  }
  return wide;
}
