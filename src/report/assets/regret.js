// The loss against the best measured configuration, and its certainty.
function regretSection() {
  const groups = collectiveGroups().filter((group) => group.sizes.some((size) => size.lost && size.cells.length > 1));
  if (groups.length === 0) return null;
  const node = section('regret', 'Regret and confidence',
    'How much more time the default, and what was chosen, take than the best configuration measured in the search. Hollow: the intervals overlap, so the data do not tell them apart. Intervals are cautious: both sides at their worst.');
  contextControls(node);
  const plot = makePlot(node, 'Time lost against the best measured, by message size', 'regret');
  const legend = el('div', { class: 'legend' });
  node.append(legend);
  const lost = (figure) => figure && [figure[0], figure[1] - 1, figure[2] - 1, figure[3] - 1];
  const certain = (row) => {
    if (row.cells.length === 1) return tag('nothing else measured');
    if (row.cells[0].config === 0) return tag('default is best', 'good');
    return { clear: tag('clear', 'good'), 'few samples': tag('few samples', 'warn'), tie: tag('tie'), 'no default': tag('no default') }[row.certainty];
  };
  // Per cent for small values; all figures shown together have one unit.
  let far = false;
  const lossText = (value) => (far ? timesText(value + 1) : '+' + percentText(value)).replace('+-', '-');
  // The best has no loss, and no interval.
  const lossColumn = (title, get, config) => {
    const column = figureColumn(title, get, lossText);
    return { ...column, node: (row) => (row.cells[0].config === config(row) ? el('span', { class: 'muted' }, 'nothing') : column.node(row)) };
  };
  const table = makeTable(node, [
    { title: 'Size', number: true, value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
    { title: 'Best measured', wrap: true, value: (row) => configName(row.cells[0].config), node: (row) => configNode(row.cells[0].config) },
    figureColumn('Time', (row) => row.cells[0].time, timeText),
    { title: 'Samples', number: true, value: (row) => row.cells[0].time[0] },
    lossColumn('Default loses', (row) => lost(row.lost), () => 0),
    { title: 'Chosen', wrap: true, value: (row) => row.chosen, node: (row) => (row.chosen < 0 ? '–' : row.chosen === row.cells[0].config ? el('span', { class: 'muted' }, 'the best') : configNode(row.chosen)) },
    lossColumn('Chosen loses', (row) => lost(row.lostChosen), (row) => row.chosen),
    { title: 'Ties', number: true, value: (row) => row.cells.filter((cell) => cell.tie).length - 1 },
    { title: 'Winner', value: (row) => row.certainty, node: certain },
  ], 'Regret, size by size', 'narrow');
  live(() => {
    const group = DATA.groups[state.group];
    const line = (id, name, get, config, colour, shift) => ({
      id: id, name: name, colour: colour, width: 1.6, radius: 4.5, shift: shift,
      points: group.sizes.filter((size) => get(size)).map((size) => {
        const figure = lost(get(size));
        const cell = size.cells.find((one) => one.config === config(size));
        return { x: size.bytes, y: figure[1], low: figure[2], high: figure[3], figure: figure, size: size, hollow: cell ? cell.tie && cell !== size.cells[0] : true };
      }),
    });
    const series = [line('default', 'library default', (size) => size.lost, () => 0, configColour(0), -3),
      line('chosen', 'chosen', (size) => size.lostChosen, (size) => size.chosen, css('--accent'), 3)];
    // Beyond some hundred per cent, factors are easier to read.
    far = series.some((one) => one.points.some((point) => point.high > 3));
    if (far) for (const point of series.flatMap((one) => one.points)) [point.y, point.low, point.high] = [point.y + 1, point.low + 1, point.high + 1];
    plot.render({
      height: 280,
      x: { log: true, label: 'Message size', text: aboutBytes },
      y: far ? { log: true, include: 1, label: 'Time / best', text: (value) => Number(value.toPrecision(3)) + '×' }
        : { log: false, include: 0, label: 'Slower than the best', text: (value) => Number((value * 100).toPrecision(3)) + ' %' },
      baseline: far ? 1 : 0,
      series: series,
      tip(bytes, here, near) {
        const best = near.point.size.cells[0];
        return tipTable(bytesText(bytes), [
          [configColour(best.config), 'best: ' + configName(best.config), timeText(best.time[1]), timeInterval(best.time), 'n = ' + best.time[0]],
          ...here.map((one) => [one.series.colour, one.series.id === 'chosen' ? 'chosen: ' + configName(one.point.size.chosen) : one.series.name, lossText(one.point.figure[1]), between(one.point.figure, lossText), one.point.hollow ? 'tie' : '']),
        ], 1 + here.indexOf(near), 'winner: ' + (best.config === 0 ? 'the default is the best measured' : near.point.size.certainty));
      },
    });
    legend.replaceChildren(...[[configColour(0), 'library default'], [css('--accent'), DATA.maps[0] && DATA.maps[0].name ? 'chosen by ' + fileName(DATA.maps[0].name) : 'chosen: what the data support', DATA.maps[0] && DATA.maps[0].name]]
      .map(([colour, name, title]) => el('span', { class: 'chip', title: title || null }, el('i', { colour: colour }), name)));
    table.show(group.sizes);
  });
  return node;
}
