// The first picture: the library's default and the tuned configurations by size, the gain shaded
// between them.

// Per size: both times, the configuration that runs, and whether that was verified. Of a size that is
// left to the library both are the same.
function comparedSizes(group) {
  const verified = group.verified.length > 0;
  const sizes = new Map();
  if (verified) {
    for (const one of group.verified) {
      if (!one.standard) continue;
      const known = sizes.get(one.bytes);
      const tuned = one.kept && one.tuned;
      if (!known || (tuned && !known.changed)) {
        sizes.set(one.bytes, { bytes: one.bytes, standard: one.standard, tuned: tuned ? one.tuned : one.standard, config: tuned ? one.config : 0, changed: Boolean(tuned), gain: tuned ? one.gain : null });
      }
    }
  } else {
    for (const size of group.sizes) {
      const standard = size.cells.find((cell) => cell.config === 0);
      const chosen = size.cells.find((cell) => cell.config === size.chosen);
      if (!standard) continue;
      const changed = chosen && chosen.config !== 0;
      sizes.set(size.bytes, { bytes: size.bytes, standard: standard.time, tuned: (changed ? chosen : standard).time, config: changed ? chosen.config : 0, changed: Boolean(changed), gain: null });
    }
  }
  return { verified: verified, sizes: [...sizes.values()].sort((a, b) => a.bytes - b.bytes) };
}

// The areas between two curves, cut where the curves change sides.
function shaded(sizes) {
  const areas = [];
  for (let at = 1; at < sizes.length; at++) {
    const ends = [sizes[at - 1], sizes[at]];
    const slower = ends.some((one) => one.tuned[1] > one.standard[1]);
    const points = ends.map((one) => ({ x: one.bytes, low: one.tuned[1], high: one.standard[1] }));
    areas.push({ points: points, colour: css(slower ? '--bad' : '--accent'), opacity: 0.22 });
  }
  return areas;
}

function pictureSection() {
  const groups = collectiveGroups().filter((group) => comparedSizes(group).sizes.length > 0);
  if (groups.length === 0) return null;
  const node = section('picture', 'Default against tuned');
  const said = el('p', { class: 'note' });
  node.append(said);
  contextControls(node);
  const plot = makePlot(node, 'Time with the default and tuned, by message size', 'picture');
  const legend = el('div', { class: 'keys', 'data-role': 'legend' });
  node.append(legend);
  live(() => {
    const group = DATA.groups[state.group];
    const { verified, sizes } = comparedSizes(group);
    const changed = sizes.filter((one) => one.changed);
    const tunedName = verified ? 'tuned, verified' : 'best of the search, not verified';
    const simulated = DATA.places[group.place].simulated ? ' Simulated.' : '';
    said.textContent = sizes.length === 0 ? 'Nothing was compared with the library’s default in this context.'
      : changed.length === 0 ? `Nothing to gain: the library’s default runs at all ${count(sizes.length, 'size')}.${simulated}`
        : `${changed.length} of ${count(sizes.length, 'size')} changed; the number at a size is its gain, default over tuned. ${verified ? 'Verified: both took turns.' : 'In the search, not verified.'}${simulated}`;
    const series = (id, name, colour, get, extra) => ({ id: id, name: name, colour: colour, width: 2.8, radius: 3.6, ...extra,
      points: sizes.map((one) => ({ x: one.bytes, y: get(one)[1], low: get(one)[2], high: get(one)[3], figure: get(one), one: one })) });
    const lines = [series('picture-default', 'library default', css('--default'), (one) => one.standard, { dash: '6 4' }), series('picture-tuned', tunedName, css('--accent'), (one) => one.tuned, { marker: 'square' })];
    plot.render({
      x: { log: true, label: 'Message size', text: aboutBytes },
      y: { log: true, label: 'Time', text: shortTime },
      series: lines, areas: shaded(sizes),
      notes: changed.map((one) => ({ x: one.bytes, y: Math.max(one.standard[1], one.standard[3]), text: timesText(one.gain ? one.gain[1] : one.standard[1] / one.tuned[1]) })),
      tip(bytes, here, near) {
        const one = near.point.one;
        return tipTable(bytesText(bytes), [
          [css('--default'), 'library default', timeText(one.standard[1]), timeInterval(one.standard), 'n = ' + one.standard[0]],
          ...(one.changed ? [[css('--accent'), configName(one.config), timeText(one.tuned[1]), timeInterval(one.tuned), 'n = ' + one.tuned[0]]] : []),
        ], -1, one.changed ? '' : 'left to the library');
      },
    });
    legend.replaceChildren(...lines.map((line) => el('span', { class: 'key' }, lineMark('line', line.colour, line.dash), line.name)),
      el('span', { class: 'key' }, el('i', { class: 'patch' }), 'time gained'));
  });
  return node;
}
