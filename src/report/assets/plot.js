// Lines with intervals over one axis of sizes or numbers. What is drawn comes as
//   { x: axis, y: axis, series: [{ id, name, colour, width, opacity, dash, line, hollow, points:
//     [{ x, y, low, high, colour, hollow }] }], areas: [{ points: [{ x, low, high }], colour }], notes:
//     [{ x, y, text, colour }], baseline, label, tip(x, [{ series, point }], nearest) }
// with an axis { log, label, text(value), ticks }. Pointer and arrow keys walk from x to x. A range of
// x that is dragged over is enlarged, and kept in the link as `id`; + and - do the same, 0 resets.

function scaleOf(axis, values, from, to, padding) {
  const map = axis.log ? Math.log : (value) => value;
  let low = Math.min(...values.map(map));
  let high = Math.max(...values.map(map));
  if (axis.include !== undefined) {
    low = Math.min(low, map(axis.include));
    high = Math.max(high, map(axis.include));
  }
  const room = (high - low || Math.abs(high) * 0.2 || 1) * padding;
  low -= axis.floor !== undefined && low - room < map(axis.floor) ? low - map(axis.floor) : room;
  high += room;
  const scale = (value) => from + ((map(value) - low) / (high - low)) * (to - from);
  scale.low = axis.log ? Math.exp(low) : low;
  scale.high = axis.log ? Math.exp(high) : high;
  return scale;
}

function ticksOf(scale, axis, room) {
  const ticks = [];
  if (axis.log) {
    for (const steps of [[1, 2, 5], [1, 3], [1]]) {
      ticks.length = 0;
      for (let power = Math.floor(Math.log10(scale.low)); power <= Math.log10(scale.high); power++) {
        for (const step of steps) {
          const value = step * 10 ** power;
          if (value >= scale.low && value <= scale.high) ticks.push(value);
        }
      }
      if (ticks.length <= room) break;
    }
    if (ticks.length >= 3) return ticks;
    ticks.length = 0;
  }
  const raw = (scale.high - scale.low) / Math.max(2, room - 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((one) => one * power >= raw) * power;
  for (let value = Math.ceil(scale.low / step) * step; value <= scale.high; value += step) {
    ticks.push(Number(value.toPrecision(12)));
  }
  return ticks;
}

// Labels measured sizes, as many as fit.
function thin(values, room) {
  const step = Math.max(1, Math.ceil(values.length / Math.max(1, room)));
  return values.filter((value, at) => at % step === 0);
}

function makePlot(host, label, id) {
  const box = el('div', { class: 'plot' });
  const reset = el('button', { type: 'button', class: 'tool', hidden: true, onclick: () => zoom(null) }, 'Whole range');
  const tools = pictureTools(box, label);
  tools.prepend(el('span', { class: 'note hint' }, 'Drag to zoom'), reset);
  host.append(box, tools);
  const plot = { spec: null, width: 0, at: -1, nearest: 0, zoom: null };
  const kept = recalled('zoom.' + id, '').split('~').map(Number);
  if (kept.length === 2 && kept[0] < kept[1]) plot.zoom = kept;

  function zoom(range) {
    plot.zoom = range;
    plot.at = -1;
    remember('zoom.' + id, range ? range.join('~') : '', '');
    tip.hide();
    draw();
  }
  // Only what is in the range, if there is anything.
  function zoomed(spec) {
    if (!plot.zoom) return spec;
    const inside = (point) => point.x >= plot.zoom[0] && point.x <= plot.zoom[1];
    const cut = { ...spec, series: spec.series.map((one) => ({ ...one, points: one.points.filter(inside) })),
      areas: (spec.areas || []).map((one) => ({ ...one, points: one.points.filter(inside) })), notes: spec.notes && spec.notes.filter(inside) };
    return cut.series.some((one) => one.points.length) ? cut : spec;
  }

  function draw() {
    if (!plot.spec || !plot.width) return;
    const focused = box.contains(document.activeElement);
    const spec = zoomed(plot.spec);
    reset.hidden = spec === plot.spec;
    const points = spec.series.flatMap((one) => one.points);
    empty(box);
    if (points.length === 0) {
      box.append(el('p', { class: 'note' }, 'Nothing to draw with these filters.'));
      return;
    }
    const narrow = plot.width < 520;
    const height = spec.height || (narrow ? 300 : 390);
    const edge = { left: 70, right: 14, top: spec.notes ? 28 : 12, bottom: 46 };
    const xs = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
    const x = scaleOf(spec.x, xs, edge.left, plot.width - edge.right, 0.03);
    const ys = points.flatMap((point) => [point.y, point.low, point.high]).filter((value) => value > 0 || !spec.y.log);
    const y = scaleOf(spec.y, ys, height - edge.bottom, edge.top, 0.06);
    const picture = shape('svg', { width: plot.width, height: height, viewBox: `0 0 ${plot.width} ${height}`, tabindex: 0, role: 'img',
      'aria-label': label + '. Arrow keys walk through the figures, + and - zoom.' });
    drawAxes(picture, spec, x, y, xs, edge, height);
    for (const one of spec.areas || []) drawArea(picture, one, x, y);
    for (const one of spec.series) drawSeries(picture, one, x, y);
    drawNotes(picture, spec.notes || [], x, y);
    const cross = shape('line', { class: 'cross', y1: edge.top, y2: height - edge.bottom, visibility: 'hidden' });
    const band = shape('rect', { class: 'band', y: edge.top, height: height - edge.bottom - edge.top, visibility: 'hidden' });
    const ring = shape('circle', { r: 8, fill: 'none', 'stroke-width': 2, visibility: 'hidden' });
    picture.append(band, cross, ring);
    box.append(picture);
    if (focused) picture.focus({ preventScroll: true });

    function show(at, pixelY, step, still) {
      plot.at = Math.max(0, Math.min(xs.length - 1, at));
      const here = [];
      for (const one of spec.series) {
        for (const point of one.points) if (point.x === xs[plot.at]) here.push({ series: one, point: point });
      }
      here.sort((a, b) => a.point.y - b.point.y);
      if (pixelY !== null) {
        const far = (one) => Math.abs(y(one.point.y) - pixelY);
        plot.nearest = here.reduce((best, one, i) => (far(one) < far(here[best]) ? i : best), 0);
      } else {
        plot.nearest = Math.max(0, Math.min(here.length - 1, plot.nearest + step));
      }
      const near = here[plot.nearest];
      const left = x(xs[plot.at]);
      for (const [name, value] of [['x1', left], ['x2', left], ['visibility', 'visible']]) cross.setAttribute(name, value);
      for (const [name, value] of [['cx', left], ['cy', y(near.point.y)], ['stroke', near.point.colour || near.series.colour], ['visibility', 'visible']]) {
        ring.setAttribute(name, value);
      }
      const place = picture.getBoundingClientRect();
      tip.show(spec.tip(xs[plot.at], here, near), place.left + left, place.top + y(near.point.y), still);
    }
    function hide() {
      cross.setAttribute('visibility', 'hidden');
      ring.setAttribute('visibility', 'hidden');
      tip.hide();
    }
    const follow = (event) => {
      const place = picture.getBoundingClientRect();
      const inside = event.clientX - place.left;
      const at = xs.reduce((best, one, i) => (Math.abs(x(one) - inside) < Math.abs(x(xs[best]) - inside) ? i : best), 0);
      show(at, event.clientY - place.top, 0);
    };
    // A drag of some pixels selects the x between its ends.
    let from = null;
    const leftOf = (event) => Math.max(edge.left, Math.min(plot.width - edge.right, event.clientX - picture.getBoundingClientRect().left));
    const drop = () => {
      from = null;
      band.setAttribute('visibility', 'hidden');
    };
    picture.addEventListener('pointermove', (event) => {
      follow(event);
      if (from === null || Math.abs(leftOf(event) - from) < 8) return;
      for (const [name, value] of [['x', Math.min(from, leftOf(event))], ['width', Math.abs(leftOf(event) - from)], ['visibility', 'visible']]) band.setAttribute(name, value);
    });
    picture.addEventListener('pointerdown', (event) => {
      follow(event);
      from = event.button === 0 ? leftOf(event) : null;
    });
    picture.addEventListener('pointerup', (event) => {
      const ends = from === null ? [] : [from, leftOf(event)].sort((a, b) => a - b);
      drop();
      const inside = xs.filter((one) => x(one) >= ends[0] && x(one) <= ends[1]);
      if (inside.length > 1 && ends[1] - ends[0] > 8) zoom([inside[0], inside[inside.length - 1]]);
    });
    picture.addEventListener('pointercancel', drop);
    picture.addEventListener('dblclick', () => zoom(null));
    picture.addEventListener('pointerleave', () => {
      drop();
      hide();
    });
    picture.addEventListener('blur', hide);
    picture.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === 'Escape') hide();
      if (event.key === '0' || event.key === '-') zoom(null);
      if (event.key === '+' && xs.length > 3) {
        // Half of the sizes, around the one that is looked at.
        const half = Math.max(1, Math.floor(xs.length / 4));
        const middle = Math.max(half, Math.min(xs.length - 1 - half, Math.max(0, plot.at)));
        zoom([xs[middle - half], xs[middle + half]]);
      }
      if (!step) return;
      event.preventDefault();
      show(plot.at + step[0], null, step[1], true);
    });
  }

  plot.render = (spec) => {
    plot.spec = spec;
    plot.at = -1;
    draw();
  };
  onWidth(box, (width) => {
    plot.width = width;
    draw();
  });
  return plot;
}

function drawAxes(picture, spec, x, y, xs, edge, height) {
  const bottom = height - edge.bottom;
  const right = Number(picture.getAttribute('width')) - edge.right;
  const room = Math.floor((right - edge.left) / 58);
  for (const value of spec.x.ticks ? spec.x.ticks(x, room) : thin(xs, room)) {
    picture.append(shape('line', { class: 'gridline', x1: x(value), x2: x(value), y1: edge.top, y2: bottom }),
      shape('text', { x: x(value), y: bottom + 17, 'text-anchor': 'middle' }, spec.x.text(value)));
  }
  for (const value of ticksOf(y, spec.y, Math.floor((bottom - edge.top) / 34))) {
    picture.append(shape('line', { class: 'gridline', x1: edge.left, x2: right, y1: y(value), y2: y(value) }),
      shape('text', { x: edge.left - 8, y: y(value) + 4, 'text-anchor': 'end' }, spec.y.text(value)));
  }
  if (spec.baseline !== undefined && spec.baseline >= y.low && spec.baseline <= y.high) {
    picture.append(shape('line', { class: 'baseline', x1: edge.left, x2: right, y1: y(spec.baseline), y2: y(spec.baseline) }));
  }
  picture.append(shape('text', { class: 'axis', x: (edge.left + right) / 2, y: height - 8, 'text-anchor': 'middle' }, spec.x.label));
  picture.append(shape('text', { class: 'axis', x: 0, y: 0, 'text-anchor': 'middle', transform: `translate(13 ${(edge.top + bottom) / 2}) rotate(-90)` }, spec.y.label));
}

// Between two curves, from x to x.
function drawArea(picture, one, x, y) {
  if (one.points.length < 2) return;
  const points = [...one.points].sort((a, b) => a.x - b.x);
  const at = (point, value) => x(point.x).toFixed(1) + ' ' + y(value).toFixed(1);
  const path = 'M' + points.map((point) => at(point, point.high)).join('L') + 'L' + [...points].reverse().map((point) => at(point, point.low)).join('L') + 'Z';
  picture.append(shape('path', { class: 'area', d: path, fill: one.colour, opacity: one.opacity || 0.2, stroke: 'none' }));
}

// Texts above points, as many as fit without touching.
function drawNotes(picture, notes, x, y) {
  let end = -Infinity;
  for (const note of [...notes].sort((a, b) => a.x - b.x)) {
    const wide = note.text.length * 7.4;
    if (x(note.x) - wide / 2 < end) continue;
    end = x(note.x) + wide / 2 + 6;
    picture.append(shape('text', { class: 'note-text halo', x: x(note.x), y: y(note.y) - 10, 'text-anchor': 'middle' }, note.text));
  }
}

// The outline of a mark: variants of one configuration differ in it as well as in their shade.
const MARKERS = ['circle', 'square', 'triangle', 'diamond'];
function markOf(kind, left, top, radius, attributes) {
  const corners = { square: [[-1, -1], [1, -1], [1, 1], [-1, 1]], triangle: [[0, -1.25], [1.2, 0.9], [-1.2, 0.9]], diamond: [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]] }[kind];
  if (!corners) return shape('circle', { ...attributes, cx: left, cy: top, r: radius });
  return shape('path', { ...attributes, d: 'M' + corners.map(([dx, dy]) => (left + dx * radius).toFixed(1) + ' ' + (top + dy * radius).toFixed(1)).join('L') + 'Z' });
}

function drawSeries(picture, one, x, y) {
  const group = shape('g', { class: 'series', 'data-series': one.id, opacity: one.opacity || 1 });
  const points = [...one.points].sort((a, b) => a.x - b.x);
  if (one.line !== false && points.length > 1) {
    const path = points.map((point, at) => (at ? 'L' : 'M') + x(point.x).toFixed(1) + ' ' + y(point.y).toFixed(1)).join('');
    group.append(shape('path', { d: path, fill: 'none', stroke: one.colour, 'stroke-width': one.width || 1.5,
      'stroke-dasharray': one.dash, 'stroke-linejoin': 'round' }));
  }
  for (const point of points) {
    const colour = point.colour || one.colour;
    const left = x(point.x) + (one.shift || 0);
    if (one.bars !== false && point.high > point.low) {
      group.append(shape('line', { class: 'error-bar', x1: left, x2: left, y1: y(point.low), y2: y(point.high), stroke: colour, 'stroke-width': 1.6, opacity: 0.75 }));
      for (const end of [point.low, point.high]) {
        group.append(shape('line', { x1: left - 3, x2: left + 3, y1: y(end), y2: y(end), stroke: colour, 'stroke-width': 1.4, opacity: 0.75 }));
      }
    }
    group.append(markOf(one.marker, left, y(point.y), one.radius || 3.2, { class: 'mark', 'data-series': one.id, 'data-x': point.x,
      fill: point.hollow ? 'var(--surface)' : colour, stroke: colour, 'stroke-width': point.hollow ? 1.8 : 0.8 }));
  }
  picture.append(group);
}

// A table for the tooltip: lines of [swatch colour, name, figures...].
function tipTable(title, lines, on, after) {
  return el('div', {}, el('h4', {}, title),
    el('table', {}, lines.map((line, at) => el('tr', { class: at === on ? 'on' : '' },
      el('td', {}, line[0] ? swatch(line[0]) : '', line[1]), line.slice(2).map((cell) => el('td', { class: 'n' }, cell))))),
    after ? el('span', { class: 'note row' }, after) : '');
}
