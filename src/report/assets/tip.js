// The tooltip of the page.
const tip = {
  node: null,
  still: false,  // for an element with the focus: it stays while the page scrolls to it
  show(content, x, y, still) {
    this.still = Boolean(still);
    this.node = this.node || document.getElementById('tip');
    this.node.replaceChildren(content);
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth - 8 ? x - 16 - box.width : x + 16;
    const top = Math.min(y + 14, innerHeight - box.height - 8);
    this.node.style.left = Math.min(Math.max(8, left), Math.max(8, innerWidth - box.width - 8)) + 'px';
    this.node.style.top = Math.max(8, top) + 'px';
  },
  hide() {
    if (this.node) this.node.hidden = true;
  },
};
addEventListener('scroll', () => tip.still || tip.hide(), { passive: true, capture: true });
addEventListener('keydown', (event) => event.key === 'Escape' && tip.hide());

function swatch(colour) {
  return el('span', { class: 'swatch', colour: colour });
}
