// Time and bus bandwidth by size: the library's default, the tuned configuration, and every
// configuration tried.
const MANY = 9;
const CROWD = 30;

// As in the plot: a line, a dashed one, or marks alone.
function lineMark(kind, colour, dash, marker) {
  const mark = shape('svg', { class: 'line-mark', width: 22, height: 10, viewBox: '0 0 22 10', 'aria-hidden': 'true' });
  if (kind !== 'tried') mark.append(shape('line', { x1: 0, x2: 22, y1: 5, y2: 5, stroke: colour, 'stroke-width': kind === 'config' ? 2 : 3, 'stroke-dasharray': dash }));
  if (kind === 'config') mark.append(markOf(marker, 11, 5, 3, { fill: colour, stroke: colour }));
  if (kind === 'tried') mark.append(shape('circle', { cx: 11, cy: 5, r: 3.8, fill: 'var(--surface)', stroke: colour, 'stroke-width': 1.8 }));
  return mark;
}

function curvesSection() {
  if (collectiveGroups().length === 0) return null;
  const node = section('curves', 'Time and bandwidth by size',
    'Medians with 95 % intervals; of fewer than six samples, their range. Hover, or walk with the arrow keys, for configuration, interval and samples. Search and verification are runs of their own: compare within one of them.');
  contextControls(node);
  const view = { metric: recalled('metric', 'time', ['time', 'busbw']), source: recalled('source', 'all', ['all', 'verification', 'search']), algorithm: recalled('algorithm', ''),
    protocol: recalled('protocol', ''), which: recalled('which', 'winners', ['winners', 'all']), hidden: new Set(recalled('hidden', '').split(',').filter(Boolean)) };
  const DEFAULTS = { metric: 'time', source: 'all', algorithm: '', protocol: '', which: 'winners' };
  const keep = () => {
    for (const name of Object.keys(DEFAULTS)) remember(name, view[name], DEFAULTS[name]);
    remember('hidden', [...view.hidden].join(','), '');
  };
  const controls = el('div', { class: 'controls' });
  const legend = el('div', { class: 'legend', role: 'group', 'aria-label': 'Configurations' });
  node.append(controls);
  const plot = makePlot(node, 'Time or bandwidth by message size', 'curves');
  node.append(legend, el('p', { class: 'note', 'data-role': 'count' }));

  // Lines as { id, config, name, kind, points: [{ bytes, time, config }] }.
  function linesOf(group) {
    const lines = new Map();
    const add = (id, line, point) => {
      if (!lines.has(id)) lines.set(id, { ...line, id: id, points: [] });
      lines.get(id).points.push(point);
    };
    const verified = group.verified.length > 0;
    if (view.source !== 'verification') {
      for (const size of group.sizes) {
        for (const cell of size.cells) {
          const standard = cell.config === 0;
          add('c' + cell.config, { config: cell.config, kind: standard ? 'default' : 'config', name: standard && verified ? 'library default, search' : configName(cell.config) },
            { bytes: size.bytes, time: cell.time, config: cell.config });
          if (cell.config === size.chosen && !verified) {
            add('tuned', { config: -1, kind: 'tuned', name: 'chosen' }, { bytes: size.bytes, time: cell.time, config: cell.config });
          }
        }
      }
    }
    if (view.source !== 'search') {
      const done = new Set(group.verified.filter((one) => one.kept && one.tuned).map((one) => one.bytes));
      const standards = new Set();
      for (const one of group.verified) {
        if (one.standard && !standards.has(one.bytes)) add('verified-default', { config: 0, kind: 'default', name: 'library default, verification' }, { bytes: one.bytes, time: one.standard, config: 0 });
        standards.add(one.bytes);
        if (!one.kept && one.tuned) add('verified-tried', { config: -1, kind: 'tried', name: 'not kept, verification' }, { bytes: one.bytes, time: one.tuned, config: one.config });
        // Without a change the default runs.
        const left = one.runs < 0 ? one.config === 0 : one.runs === 0 && !done.has(one.bytes);
        const tuned = one.kept && one.tuned ? one.tuned : left && one.standard;
        if (tuned) done.add(one.bytes);
        if (tuned) add('verified-tuned', { config: -1, kind: 'tuned', name: 'tuned, verification' }, { bytes: one.bytes, time: tuned, config: one.kept ? one.config : 0 });
      }
    }
    return [...lines.values()];
  }
  function passes(line, winners) {
    if (line.kind !== 'config') return true;
    const config = DATA.configs[line.config];
    if (view.algorithm && config.algorithm !== view.algorithm) return false;
    if (view.protocol && config.protocol !== view.protocol) return false;
    return view.which === 'all' || winners.has(line.config);
  }

  function drawControls(group) {
    const words = (name) => [...new Set(group.sizes.flatMap((size) => size.cells.map((cell) => DATA.configs[cell.config][name])))].filter(Boolean).sort();
    const pick = (name, title) => {
      const all = words(name);
      if (!all.includes(view[name])) view[name] = '';
      return all.length > 1 ? control(title, select([['', 'all'], ...all.map((word) => [word, word])], view[name], (value) => {
        view[name] = value;
        keep();
        draw();
      })) : '';
    };
    const change = (name) => (value) => {
      view[name] = value;
      keep();
      draw();
    };
    controls.replaceChildren(
      segments('Show', [['time', 'Time'], ['busbw', 'Bus bandwidth']], view.metric, change('metric')),
      group.verified.length && group.sizes.length ? segments('From', [['all', 'Both'], ['verification', 'Verification'], ['search', 'Search']], view.source, change('source')) : '',
      group.sizes.some((size) => size.cells.length > 1) ? segments('Configurations', [['winners', 'Best somewhere'], ['all', 'All tried']], view.which, change('which')) : '',
      pick('algorithm', 'Algorithm'), pick('protocol', 'Protocol'));
  }

  function draw() {
    const group = DATA.groups[state.group];
    const winners = new Set(group.sizes.flatMap((size) => [size.cells[0].config, size.chosen]));
    const tried = new Set(group.sizes.flatMap((size) => size.cells.map((cell) => cell.config)));
    const lines = linesOf(group).filter((line) => passes(line, winners));
    const rank = { config: 0, tried: 1, default: 2, tuned: 3 };
    lines.sort((a, b) => rank[a.kind] - rank[b.kind] || a.config - b.config);
    const busbw = view.metric === 'busbw' && group.bus > 0;
    const value = (bytes, us) => (busbw ? bandwidth(group, bytes, us) : us);
    const colourOf = (line) => (line.kind === 'tuned' ? css('--accent') : line.kind === 'tried' ? css('--muted') : configColour(line.config));
    // Variants of one algorithm and protocol, such as channel counts, differ in shade, dash and mark.
    const DASHES = [undefined, '7 3', '2 3', '9 3 2 3'];
    const variantOf = (line) => (line.kind === 'config' ? DATA.configs[line.config].variant : 0);
    const dashOf = (line) => (line.id === 'c0' && group.verified.length && view.source === 'all' ? '5 4' : DASHES[variantOf(line) % DASHES.length]);
    const markerOf = (line) => MARKERS[variantOf(line) % MARKERS.length];
    const shown = lines.filter((line) => !view.hidden.has(line.id));
    const series = shown.map((line) => ({
      id: line.id, name: line.name, of: line, line: line.kind !== 'tried', colour: colourOf(line),
      // The more lines there are, the fainter: the default and the chosen configuration stand out.
      width: line.kind === 'config' ? (shown.length > CROWD ? 1 : 1.4) : 2.6,
      opacity: line.kind !== 'config' || shown.length <= MANY ? 1 : shown.length > CROWD ? 0.35 : 0.65,
      dash: dashOf(line), marker: markerOf(line),
      bars: line.kind !== 'config' || shown.length <= MANY, radius: line.kind === 'config' ? (shown.length > CROWD ? 1.8 : 2.8) : 3.8,
      points: line.points.map((point) => ({
        x: point.bytes, y: value(point.bytes, point.time[1]), figure: point.time, config: point.config,
        low: value(point.bytes, point.time[busbw ? 3 : 2]), high: value(point.bytes, point.time[busbw ? 2 : 3]),
        colour: line.kind === 'tuned' ? configColour(point.config) : undefined, hollow: line.kind === 'tried',
      })),
    }));
    plot.render({
      x: { log: true, label: 'Message size', text: aboutBytes },
      y: { log: true, label: busbw ? 'Bus bandwidth, GB/s' : 'Time', text: busbw ? (rate) => String(Number(rate.toPrecision(3))) : shortTime },
      series: series,
      tip(bytes, here, near) {
        const order = [...here].sort((a, b) => a.point.figure[1] - b.point.figure[1]);
        const at = order.indexOf(near);
        const first = Math.max(0, Math.min(at - 5, order.length - 11));
        const part = order.slice(first, first + 11);
        return tipTable(bytesText(bytes) + ', ' + (busbw ? 'bus bandwidth' : 'time'), part.map((one) => {
          const figure = one.point.figure;
          const text = (us) => (busbw ? rateText(bandwidth(group, bytes, us)) : timeText(us));
          const name = ['tuned', 'tried'].includes(one.series.of.kind) ? `${one.series.name}: ${configName(one.point.config)}` : one.series.name;
          return [one.point.colour || one.series.colour, name, text(figure[1]), busbw ? between([figure[0], figure[1], figure[3], figure[2]], text) : timeInterval(figure), 'n = ' + figure[0]];
        }), part.indexOf(near), order.length > part.length ? `${order.length - part.length} more` : '');
      },
    });
    const chips = lines.map((line) => el('button', { type: 'button', class: 'chip' + (line.kind === 'config' ? '' : ' strong'), 'data-series': line.id,
      'aria-pressed': String(!view.hidden.has(line.id)), onclick: () => {
        if (view.hidden.has(line.id)) view.hidden.delete(line.id);
        else view.hidden.add(line.id);
        keep();
        draw();
        legend.querySelector(`[data-series="${line.id}"]`).focus();
      } }, lineMark(line.kind, colourOf(line), dashOf(line), markerOf(line)), line.name));
    legend.replaceChildren(...chips.reverse());
    const samples = group.sizes.reduce((sum, size) => sum + size.cells.reduce((all, cell) => all + cell.time[0], 0), 0);
    const rounds = group.verified.reduce((sum, one) => sum + (one.tuned ? one.tuned[0] : 0) + (one.standard ? one.standard[0] : 0), 0);
    node.querySelector('[data-role="count"]').textContent = `${groupText(group)}: ` +
      [samples ? `${count(samples, 'sample')} of ${count(tried.size, 'configuration')} in the search` : '', rounds ? `${count(rounds, 'sample')} in the verification` : ''].filter(Boolean).join(', ') +
      (DATA.places[group.place].simulated ? '. SIMULATED.' : '.');
  }
  const all = () => {
    drawControls(DATA.groups[state.group]);
    draw();
  };
  live(all);
  return node;
}
