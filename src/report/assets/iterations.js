// Whole training steps: the best configuration beside compute differs from the best one alone.
function iterationsSection() {
  const groups = DATA.groups.filter((group) => !isCollective(group) && (group.sizes.length || group.verified.length));
  if (groups.length === 0) return null;
  const node = section('iterations', 'Whole iterations', 'Times of steps that overlap compute. Where default and tuned took turns, the gain is that of the rounds.');
  const rows = groups.flatMap((group) => [
    ...group.verified.flatMap((one) => [
      one.standard && { group: group, bytes: one.bytes, config: 0, time: one.standard, source: 'verification', verdict: '' },
      one.tuned && { group: group, bytes: one.bytes, config: one.config, time: one.tuned, gain: one.gain, source: 'verification', verdict: one.verdict }]),
    ...group.sizes.flatMap((size) => size.cells.map((cell) => {
      const standard = size.cells.find((other) => other.config === 0);
      return { group: group, bytes: size.bytes, config: cell.config, time: cell.time, source: 'search', verdict: cell.tie ? 'tie with the best' : '',
        gain: standard && cell.config !== 0 ? [Math.min(cell.time[0], standard.time[0]), standard.time[1] / cell.time[1], standard.time[2] / cell.time[3], standard.time[3] / cell.time[2]] : null };
    })),
  ]).filter(Boolean);
  const box = el('div', { class: 'plot' });
  node.append(box, pictureTools(box, 'Whole iterations'));
  const table = makeTable(node, [
    { title: 'Workload', wrap: true, long: true, value: (row) => row.group.workload || row.group.label },
    { title: 'Around', wrap: true, value: (row) => row.group.collective + ' ' + bytesText(row.bytes) },
    { title: 'Ranks', number: true, value: (row) => row.group.ranks },
    { title: 'Configuration', wrap: true, value: (row) => configName(row.config), node: (row) => configNode(row.config) },
    { title: 'From', value: (row) => row.source },
    figureColumn('Step', (row) => row.time, timeText),
    { title: 'Samples', number: true, value: (row) => row.time[0] },
    figureColumn('Gain', (row) => row.gain, gainText),
    { title: 'Verdict', value: (row) => row.verdict, node: (row) => (row.verdict ? tag(row.verdict, VERDICTS[row.verdict]) : '') },
  ], 'Iterations', 'narrow');
  const draw = () => {
    drawIntervals(box, rows.slice(0, 40));
    table.show(rows);
  };
  onWidth(box, draw);
  onTheme(draw);
  return node;
}

// One line for each: a dot with its interval.
function drawIntervals(box, rows) {
  const width = box.clientWidth;
  const line = 34;
  const height = rows.length * line + 44;
  const picture = shape('svg', { width: width, height: height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'Times of steps with their intervals; the table below has the figures' });
  const x = scaleOf({ log: false, floor: 0 }, rows.flatMap((row) => [row.time[2], row.time[3], row.time[1]]), 8, width - 10, 0.08);
  for (const value of ticksOf(x, { log: false }, Math.max(3, Math.floor(width / 110)))) {
    picture.append(shape('line', { class: 'gridline', x1: x(value), x2: x(value), y1: 2, y2: height - 38 }), shape('text', { x: x(value), y: height - 22, 'text-anchor': 'middle' }, shortTime(value)));
  }
  picture.append(shape('text', { class: 'axis', x: width / 2, y: height - 4, 'text-anchor': 'middle' }, 'Time of a step'));
  rows.forEach((row, at) => {
    const y = at * line + 24;
    const colour = configColour(row.config);
    const follow = (event) => tip.show(tipTable(row.group.workload || row.group.label, [[colour, configName(row.config), timeText(row.time[1]), timeInterval(row.time), 'n = ' + row.time[0]]], 0, row.source), event.clientX, event.clientY);
    picture.append(shape('g', { onpointermove: follow, onpointerleave: () => tip.hide() },
      shape('rect', { x: 0, y: y - 20, width: width, height: line, fill: 'transparent' }),
      shape('text', { x: 8, y: y - 8 }, clipText(`${configName(row.config)} (${row.source}, ${row.group.collective} ${bytesText(row.bytes)})`, width)),
      shape('line', { class: 'error-bar', x1: x(row.time[2]), x2: x(row.time[3]), y1: y + 3, y2: y + 3, stroke: colour, 'stroke-width': 3, 'stroke-linecap': 'round', opacity: 0.55 }),
      shape('circle', { class: 'mark', cx: x(row.time[1]), cy: y + 3, r: 5, fill: colour })));
  });
  box.replaceChildren(picture);
}
