// The first picture of a tuned job: where the time of an iteration goes, in both settings.
// A setting is { name, us, compute, hidden, exposed: [[class, us]...], low, high }; times are in microseconds.
const MOST_HUES = 7; // classes with a colour of their own

function partColour(part) {
  if (part === 'compute') return theme() === 'dark' ? '#3a4652' : '#c3ccd5';
  if (part === 'hidden') return theme() === 'dark' ? '#5d7d8f' : '#8fb3c4';
  if (part === 'other') return css('--default');
  return HUES[theme()][part % HUES[theme()].length];
}

// The parts of a bar in the order in which they are drawn: { part, name, us }.
function partsOf(setting) {
  if (setting.compute === null) return [{ part: 'compute', name: 'not known', us: setting.us }];
  const parts = [{ part: 'compute', name: 'compute and the rest, no collective running', us: setting.compute },
    { part: 'hidden', name: 'communication hidden behind compute', us: setting.hidden }];
  let other = 0;
  for (const [at, us] of setting.exposed) {
    if (at < MOST_HUES) parts.push({ part: at, name: 'exposed: ' + DATA.classes[at].label, us: us });
    else other += us;
  }
  if (other > 0) parts.push({ part: 'other', name: 'exposed: others', us: other });
  return parts.filter((part) => part.us > 0);
}

function drawBars(box) {
  const width = box.clientWidth;
  const line = 78;
  const height = DATA.settings.length * line + 44;
  const most = Math.max(...DATA.settings.map((one) => Math.max(one.us, one.high || 0)));
  const x = (us) => 1 + (us / most) * (width - 14);
  const picture = shape('svg', { width: width, height: height, viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': 'Time of an iteration in both settings, and where it goes; the table below has the figures' });
  const scale = { low: 0, high: most };
  const bottom = height - 40;
  for (const us of ticksOf(scale, { log: false }, Math.max(3, Math.floor(width / 110)))) {
    picture.append(shape('line', { class: 'gridline', x1: x(us), x2: x(us), y1: 26, y2: bottom }),
      shape('text', { x: Math.min(Math.max(x(us), 10), width - 22), y: height - 24, 'text-anchor': us === 0 ? 'start' : 'middle' }, us === 0 ? '0' : shortTime(us)));
  }
  picture.append(shape('text', { class: 'axis', x: width / 2, y: height - 5, 'text-anchor': 'middle' }, 'Time of one iteration'));
  DATA.settings.forEach((setting, at) => {
    const top = at * line + 22;
    picture.append(shape('text', { class: 'row', x: 1, y: top - 6 }, clipText(setting.title, width)));
    let from = 0;
    for (const one of partsOf(setting)) {
      const left = x(from);
      const wide = x(from + one.us) - left;
      const colour = partColour(one.part);
      const share = percentText(one.us / setting.us);
      const follow = (event) => tip.show(tipTable(setting.name, [[colour, one.name, timeText(one.us), share]], 0, ''), event.clientX, event.clientY);
      picture.append(shape('rect', { class: 'part', 'data-setting': setting.name, 'data-part': one.part, x: left, y: top, width: Math.max(wide, 0.5), height: 40,
        fill: colour, stroke: css('--surface'), 'stroke-width': 1, onpointermove: follow, onpointerleave: () => tip.hide() }));
      const text = shortTime(one.us);
      if (wide > text.length * 7.4 + 8) {
        picture.append(shape('text', { class: 'cell', x: left + wide / 2, y: top + 25, 'text-anchor': 'middle', fill: inkOn(colour) }, text));
        picture.lastChild.style.fill = inkOn(colour);
      }
      from += one.us;
    }
    if (setting.low) {
      const middle = top + 46;
      picture.append(shape('line', { class: 'error-bar', x1: x(setting.low), x2: x(setting.high), y1: middle, y2: middle, stroke: css('--ink'), 'stroke-width': 2 }));
      for (const end of [setting.low, setting.high]) {
        picture.append(shape('line', { x1: x(end), x2: x(end), y1: middle - 4, y2: middle + 4, stroke: css('--ink'), 'stroke-width': 2 }));
      }
    }
  });
  box.replaceChildren(picture);
}

function barLegend(host) {
  const names = new Map();
  for (const setting of DATA.settings) for (const one of partsOf(setting)) names.set(String(one.part), one);
  host.replaceChildren(...[...names.values()].map((one) => el('span', { class: 'key' }, swatch(partColour(one.part)), one.name)));
}

function barsSection() {
  if (DATA.settings.length === 0) return null;
  const node = section('iteration', 'Where an iteration goes', DATA.barsNote);
  const box = el('div', { class: 'plot' });
  const legend = el('div', { class: 'keys' });
  node.append(box, pictureTools(box, 'Time of one iteration'), legend);
  const draw = () => {
    drawBars(box);
    barLegend(legend);
  };
  onWidth(box, draw);
  onTheme(draw);
  const rows = DATA.rows;
  if (rows.length) {
    const columns = [{ title: 'Part', wrap: true, long: true, value: (row) => row.name, node: (row) => (row.bold ? el('b', {}, row.name) : row.name) }];
    DATA.settings.forEach((setting, at) => columns.push({ title: setting.name, number: true, value: (row) => row.us[at],
      text: (row) => (row.us[at] === null ? '–' : row.us[at] === 0 ? '0' : timeText(row.us[at])) }));
    if (DATA.settings.length === 2) {
      columns.push({ title: 'Difference', number: true, value: (row) => (row.us[0] === null || row.us[1] === null ? null : row.us[1] - row.us[0]),
        text: (row) => (row.us[0] === null || row.us[1] === null ? '–' : differenceText(row.us[1] - row.us[0])) });
    }
    makeTable(node, columns, 'Parts of an iteration').show(rows);
  }
  if (DATA.method) node.append(el('p', { class: 'note' }, DATA.method));
  return node;
}

function differenceText(us) {
  if (Math.abs(us) < 0.05) return '0';
  return (us < 0 ? '−' : '+') + timeText(Math.abs(us));
}
