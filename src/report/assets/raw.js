// All figures of the page, with sorting, filtering and export.
function rawRows() {
  const rows = [];
  for (const group of DATA.groups) {
    const place = DATA.places[group.place];
    const add = (source, bytes, config, time, more) => rows.push({ group: group, place: place, source: source, bytes: bytes, config: config, time: time, ...more });
    for (const one of group.verified) {
      if (one.standard) add('verification', one.bytes, 0, one.standard, {});
      if (one.tuned) add('verification', one.bytes, one.config, one.tuned, { gain: one.gain, dropped: !one.kept });
    }
    for (const size of group.sizes) {
      const standard = size.cells.find((cell) => cell.config === 0);
      for (const cell of size.cells) {
        add('search', size.bytes, cell.config, cell.time, { tie: cell.tie, best: cell === size.cells[0], failures: cell.failures,
          gain: standard && cell !== standard ? [Math.min(cell.time[0], standard.time[0]), standard.time[1] / cell.time[1], standard.time[2] / cell.time[3], standard.time[3] / cell.time[2]] : null });
      }
    }
  }
  return rows;
}

const CSV = [
  ['source', (row) => row.source], ['library', (row) => row.place.library], ['library_version', (row) => row.place.version], ['gpu', (row) => row.place.gpu],
  ['simulated', (row) => (row.place.simulated ? 1 : 0)], ['kind', (row) => row.group.kind], ['collective', (row) => row.group.collective],
  ['nodes', (row) => row.group.nodes], ['ranks', (row) => row.group.ranks], ['type', (row) => row.group.type], ['reduce', (row) => row.group.reduce],
  ['root', (row) => row.group.root], ['in_place', (row) => (row.group.inPlace ? 1 : 0)], ['workload', (row) => row.group.workload], ['bytes', (row) => row.bytes],
  ['algorithm', (row) => DATA.configs[row.config].algorithm], ['protocol', (row) => DATA.configs[row.config].protocol], ['channels', (row) => DATA.configs[row.config].channels],
  ['segment_bytes', (row) => DATA.configs[row.config].segment], ['environment', (row) => DATA.configs[row.config].environment], ['samples', (row) => row.time[0]],
  ['median_us', (row) => row.time[1]], ['low_us', (row) => row.time[2]], ['high_us', (row) => row.time[3]],
  ['busbw_gbps', (row) => (row.group.bus > 0 ? Number(bandwidth(row.group, row.bytes, row.time[1]).toPrecision(5)) : null)],
  ['gain', (row) => (row.gain ? Number(row.gain[1].toPrecision(5)) : null)], ['gain_low', (row) => (row.gain ? Number(row.gain[2].toPrecision(5)) : null)],
  ['gain_high', (row) => (row.gain ? Number(row.gain[3].toPrecision(5)) : null)], ['failures', (row) => row.failures || 0],
];

function csvText(rows) {
  return [CSV.map((column) => column[0]), ...rows.map((row) => CSV.map((column) => csvCell(column[1](row))))].map((cells) => cells.join(',')).join('\n') + '\n';
}

const whereText = (group) => (group.workload ? group.workload + '; ' : '') + shapeText(group);

function rawSection() {
  const rows = rawRows();
  if (rows.length === 0) return null;
  const node = section('raw', 'All figures', 'Medians of all samples with their 95 % intervals. The gain is the default’s time over this one’s.');
  const view = { text: recalled('filter', ''), collective: '', source: '' };
  const shown = el('span', { class: 'muted', 'data-role': 'shown' });
  const filter = el('input', { type: 'search', placeholder: 'for example: tree ll 64 KiB', 'aria-label': 'Filter rows by words', oninput: () => {
    view.text = filter.value.trim().toLowerCase();
    remember('filter', view.text, '');
    draw();
  } });
  filter.value = view.text;
  const words = (get) => [...new Set(rows.map(get))].sort();
  const pick = (title, name, all) => (all.length > 1 ? control(title, select([['', 'all'], ...all.map((word) => [word, word])], '', (value) => {
    view[name] = value;
    draw();
  })) : '');
  node.append(el('div', { class: 'controls' }, control('Filter', filter), pick('Collective', 'collective', words((row) => row.group.collective)), pick('From', 'source', words((row) => row.source)),
    el('button', { type: 'button', class: 'main', id: 'csv', onclick: () => download('diapason-report.csv', 'text/csv', csvText(table.sorted())) }, 'Download as CSV'), shown));
  const table = makeTable(node, [
    { title: 'From', value: (row) => row.source },
    { title: 'Collective', value: (row) => row.group.collective },
    ...(new Set(rows.map((row) => whereText(row.group))).size > 1 ? [{ title: 'Where', wrap: true, value: (row) => whereText(row.group) }] : []),
    { title: 'Size', number: true, value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
    { title: 'Configuration', wrap: true, value: (row) => configName(row.config), node: (row) => configNode(row.config) },
    { title: 'Samples', number: true, value: (row) => row.time[0] },
    figureColumn('Median', (row) => row.time, timeText),
    { title: 'Bus bandwidth', number: true, value: (row) => (row.group.bus > 0 ? bandwidth(row.group, row.bytes, row.time[1]) : null),
      text: (row) => (row.group.bus > 0 ? rateText(bandwidth(row.group, row.bytes, row.time[1])) : '–') },
    figureColumn('Gain', (row) => row.gain, gainText),
    { title: '', value: (row) => (row.best ? 'best' : row.tie ? 'tie' : row.dropped ? 'not kept' : ''), node: (row) => (row.best ? tag('best', 'good') : row.tie ? tag('tie') : row.dropped ? tag('not kept') : '') },
  ], 'Table of all figures');
  const hay = (row) => (row.hay = row.hay || [row.source, groupText(row.group), bytesText(row.bytes), row.bytes, configName(row.config)].join(' ').toLowerCase());
  const draw = () => {
    const wanted = view.text.split(/\s+/).filter(Boolean);
    const left = rows.filter((row) => (!view.collective || row.group.collective === view.collective) && (!view.source || row.source === view.source) && wanted.every((word) => hay(row).includes(word)));
    shown.textContent = `${left.length.toLocaleString('en')} of ${rows.length.toLocaleString('en')} rows`;
    table.show(left);
  };
  onTheme(table.draw);
  draw();
  return node;
}
