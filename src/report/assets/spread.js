// How the samples behind the medians are distributed, size by size.
const SPREAD_ROW = 19;

// Rows of one size: { bytes, of: [{ config, verified, samples, quantiles }] }; the verification where
// there is one.
function spreadsOf(group) {
  const sizes = new Map();
  const take = (bytes, spreads) => {
    const all = (spreads || []).map((one) => ({ config: one[0], verified: one[1] === 1, samples: one[2], quantiles: one.slice(3) })).sort((a, b) => a.config - b.config);
    if (all.some((one) => one.config === 0) && !sizes.has(bytes)) sizes.set(bytes, { bytes: bytes, of: all });
  };
  for (const one of [...group.verified].sort((a, b) => Number(b.kept) - Number(a.kept))) take(one.bytes, one.spreads);
  for (const size of group.sizes) take(size.bytes, size.spreads);
  return [...sizes.values()].sort((a, b) => a.bytes - b.bytes);
}

function spreadSection() {
  if (!collectiveGroups().some((group) => spreadsOf(group).length)) return null;
  const node = section('spread', 'Distribution of the samples',
    'All samples of a size, relative to the median of the library’s default: the box holds the middle half, the line 80 %, the dots are the fastest and the slowest.');
  contextControls(node);
  const box = el('div', { class: 'plot' });
  const legend = el('div', { class: 'keys' });
  node.append(box, pictureTools(box, 'Distribution of the samples'), legend);
  const draw = () => drawSpreads(box, legend, spreadsOf(DATA.groups[state.group]));
  state.listeners.push(draw);
  onWidth(box, draw);
  onTheme(draw);
  return node;
}

function drawSpreads(box, legend, sizes) {
  const width = box.clientWidth;
  if (sizes.length === 0 || !width) {
    box.replaceChildren(el('p', { class: 'note' }, 'There are no distributions in this context.'));
    legend.replaceChildren();
    return;
  }
  const left = 76;
  const rows = sizes.reduce((sum, size) => sum + size.of.length, 0);
  const height = rows * SPREAD_ROW + sizes.length * 7 + 48;
  const picture = shape('svg', { width: width, height: height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Distribution of the samples by message size, relative to the default' });
  const relative = (size) => {
    const standard = size.of.find((one) => one.config === 0).quantiles[3];
    return size.of.map((one) => ({ ...one, values: one.quantiles.map((value) => value / standard) }));
  };
  const all = sizes.flatMap(relative);
  // Outliers far away would leave no room for the rest: they are drawn at the edge.
  const x = scaleOf({ log: true, include: 1 }, all.flatMap((one) => [one.values[1], one.values[5], Math.max(one.values[0], one.values[1] / 1.5), Math.min(one.values[6], one.values[5] * 1.5)]), left + 8, width - 14, 0.04);
  const inside = (value) => Math.max(left + 8, Math.min(width - 14, x(value)));
  for (const value of ticksOf(x, { log: true }, Math.max(3, Math.floor((width - left) / 90)))) {
    picture.append(shape('line', { class: 'gridline', x1: x(value), x2: x(value), y1: 4, y2: height - 42 }),
      shape('text', { x: x(value), y: height - 26, 'text-anchor': 'middle' }, Number(value.toPrecision(3)) + '×'));
  }
  picture.append(shape('line', { class: 'baseline', x1: x(1), x2: x(1), y1: 4, y2: height - 42 }),
    shape('text', { class: 'axis', x: (left + width) / 2, y: height - 6, 'text-anchor': 'middle' }, 'Time / median of the default'));
  let top = 6;
  for (const size of sizes) {
    picture.append(shape('text', { class: 'row', x: left - 6, y: top + SPREAD_ROW / 2 + 5, 'text-anchor': 'end' }, bytesText(size.bytes)));
    for (const one of relative(size)) {
      picture.append(spreadRow(one, size, inside, top, width));
      top += SPREAD_ROW;
    }
    top += 7;
  }
  box.replaceChildren(picture);
  legend.replaceChildren(el('span', { class: 'key' }, swatch(css('--default')), 'library default'), el('span', { class: 'key' }, swatch(css('--accent')), 'tuned, or the best of the search'));
}

function spreadRow(one, size, x, top, width) {
  const colour = one.config === 0 ? css('--default') : css('--accent');
  const middle = top + SPREAD_ROW / 2;
  const q = one.values;
  const follow = (event) => tip.show(tipTable(`${bytesText(size.bytes)}: ${configName(one.config)}`, [
    [colour, 'fastest', timeText(one.quantiles[0])], [null, '10 %', timeText(one.quantiles[1])], [null, 'median', timeText(one.quantiles[3])],
    [null, '90 %', timeText(one.quantiles[5])], [null, 'slowest', timeText(one.quantiles[6])]], 2, `n = ${one.samples}, ${one.verified ? 'verification' : 'search'}`), event.clientX, event.clientY);
  const dot = (value) => shape('circle', { cx: x(value), cy: middle, r: 2, fill: colour });
  return shape('g', { class: 'spread', 'data-config': one.config, onpointermove: follow, onpointerleave: () => tip.hide() },
    shape('rect', { x: 0, y: top, width: width, height: SPREAD_ROW, fill: 'transparent' }),
    shape('line', { x1: x(q[1]), x2: x(q[5]), y1: middle, y2: middle, stroke: colour, 'stroke-width': 1.6 }),
    shape('rect', { x: x(q[2]), y: top + 4, width: Math.max(2, x(q[4]) - x(q[2])), height: SPREAD_ROW - 8, rx: 2, fill: colour, opacity: 0.45 }),
    shape('line', { x1: x(q[3]), x2: x(q[3]), y1: top + 2, y2: top + SPREAD_ROW - 2, stroke: colour, 'stroke-width': 2.6 }), dot(q[0]), dot(q[6]));
}
