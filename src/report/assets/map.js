// Decisions by size: a row for every context, coloured by configuration.
const NARROWEST = 9; // pixels of a decision

function mapSection() {
  if (!DATA.maps.some((map) => map.rows.length)) return null;
  const node = section('map', 'Decision map', 'What runs at which size. Hatched: left to the library. Hover, or walk with Tab, for the row of the policy, its gain and why.');
  const view = { map: Math.max(0, Math.min(DATA.maps.length - 1, Number(recalled('map', '0')) || 0)) };
  const controls = el('div', { class: 'controls' });
  const head = el('p', { class: 'note' });
  const box = el('div', { class: 'map' });
  const legend = el('div', { class: 'legend' });
  const name = (map) => map.name ? fileName(map.name, DATA.maps.map((one) => one.name)) : 'What the data support (best measured)';
  if (DATA.maps.length > 1) {
    controls.append(control('Policy', select(DATA.maps.map((map, at) => [at, name(map), map.name]), view.map, (at) => {
      view.map = Number(at);
      remember('map', at, 0);
      draw();
    })));
    node.append(controls);
  }
  node.append(head, box, pictureTools(box, 'Decision map'), legend);

  function domainOf(map) {
    const ends = map.rows.flatMap((row) => [
      ...row.decisions.flatMap((one) => [one.first, one.last === null ? null : one.last + (map.name ? 1 : 0)]),
      ...(row.group >= 0 ? DATA.groups[row.group].sizes.concat(DATA.groups[row.group].verified).map((size) => size.bytes) : [])]).filter((value) => value > 0);
    return [Math.max(1, Math.min(...ends) / 2), Math.max(...ends) * 2];
  }
  function tipOf(map, row, one) {
    // Rows end one byte before a round number.
    const end = one.last === null ? 'any size' : bytesText(one.last + 1).endsWith('iB') ? 'below ' + bytesText(one.last + 1) : bytesText(one.last);
    const range = map.name && one.first === one.last ? `exactly ${bytesText(one.first)}` : map.name ? `${one.first > 0 ? bytesText(one.first) : '0'} to ${end}`
      : one.first === one.last ? bytesText(one.first) : `${bytesText(one.first)} to ${bytesText(one.last)}, as measured`;
    const proofs = one.proofs.slice(0, 12).map((proof) => [null, bytesText(proof.bytes), timesText(proof.gain[1]), between(proof.gain, gainText), 'n = ' + proof.gain[0], proof.verified ? 'verified' : 'search']);
    const box = tipTable(configName(one.config), proofs, -1, one.proofs.length > 12 ? `and ${one.proofs.length - 12} more sizes` : '');
    box.insertBefore(el('div', {}, `${row.label}, ${range}`), box.children[1]);
    box.append(el('span', { class: 'row' }, one.why));
    if (one.row) box.append(el('span', { class: 'row mono' }, one.row));
    if (one.remark) box.append(el('span', { class: 'row note' }, one.remark));
    return box;
  }

  function draw() {
    const map = DATA.maps[view.map];
    const width = box.clientWidth || 700;
    const rowHeight = 58;
    const [low, high] = domainOf(map);
    const x = (bytes) => 4 + ((Math.log2(bytes) - Math.log2(low)) / (Math.log2(high) - Math.log2(low))) * (width - 8);
    const height = map.rows.length * rowHeight + 46;
    const picture = shape('svg', { width: width, height: height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Decision map' });
    const hatch = shape('pattern', { id: 'hatch', width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      shape('rect', { width: 7, height: 7, fill: 'var(--soft)' }), shape('line', { x1: 0, x2: 0, y1: 0, y2: 7, stroke: 'var(--line)', 'stroke-width': 5 }));
    picture.append(shape('defs', {}, hatch));
    const powers = [];
    for (let power = Math.ceil(Math.log2(low)); power <= Math.log2(high); power++) powers.push(2 ** power);
    for (const size of thin(powers, Math.floor(width / 58))) {
      picture.append(shape('line', { class: 'gridline', x1: x(size), x2: x(size), y1: 6, y2: height - 38 }),
        shape('text', { x: Math.min(Math.max(x(size), 14), width - 14), y: height - 22, 'text-anchor': 'middle' }, aboutBytes(size)));
    }
    picture.append(shape('text', { class: 'axis', x: width / 2, y: height - 3, 'text-anchor': 'middle' }, 'Message size'));
    const used = new Set();
    map.rows.forEach((row, at) => {
      const top = at * rowHeight + 24;
      const label = row.group >= 0 ? groupText(DATA.groups[row.group]) : row.label + ' (not measured)';
      picture.append(shape('text', { class: 'row', x: 4, y: top - 6 }, clipText(label, width)));
      // Narrow decisions are drawn at a minimum width, above their neighbours.
      const least = (one) => Number(one.first === one.last || (one.last !== null && x(Math.max(one.last, 1)) - x(Math.max(one.first, 1)) < NARROWEST));
      for (const one of [...row.decisions].sort((a, b) => least(a) - least(b))) {
        // A measured size stands for its neighbourhood, a row for exactly its range.
        const from = Math.max(map.name ? Math.max(one.first, 1) : one.first / Math.SQRT2, low);
        const to = Math.min(map.name ? (one.last === null ? high : one.last + 1) : one.last * Math.SQRT2, high);
        if (to <= from) continue;
        used.add(one.config);
        const colour = configColour(one.config);
        const wide = Math.max(x(to) - x(from), NARROWEST);
        const left = Math.max(0, Math.min((x(from) + x(to) - wide) / 2, width - wide));
        // If the name does not fit, its first part may.
        const names = one.config === 0 ? ['default'] : [configName(one.config), configName(one.config).split(',')[0]];
        const text = names.find((name) => wide > name.length * 6.9 + 14);
        const show = () => {
          const place = rect.getBoundingClientRect();
          tip.show(tipOf(map, row, one), place.left + Math.min(place.width / 2, 60), place.bottom, true);
        };
        const rect = shape('rect', { class: 'segment', x: left, y: top, width: wide, height: 26, rx: 4, tabindex: 0, role: 'img', 'data-config': one.config,
          fill: one.config === 0 ? 'url(#hatch)' : colour, 'aria-label': `${label}, from ${bytesText(one.first)}: ${configName(one.config)}, ${one.why}`,
          onfocus: show, onblur: () => tip.hide(), onpointerleave: () => tip.hide(),
          onpointermove: (event) => tip.show(tipOf(map, row, one), event.clientX, event.clientY) });
        picture.append(rect);
        if (text) {
          picture.append(shape('text', { class: 'cell', x: left + wide / 2, y: top + 17, 'text-anchor': 'middle', style: false }, text));
          picture.lastChild.style.fill = one.config === 0 ? css('--muted') : inkOn(colour);
        }
      }
    });
    box.replaceChildren(picture);
    head.title = map.name;
    head.textContent = map.name ? [`${name(map)}, ${count(map.rules, 'row')}`, map.origin, map.digest].filter(Boolean).join(' · ')
      : 'No policy: where the data support a change, the fastest configuration measured; a tie stays with the default.';
    legend.replaceChildren(...[...used].sort((a, b) => a - b).map((config) => el('span', { class: 'chip' }, el('i', { colour: configColour(config) }), configName(config))));
  }
  onWidth(box, draw);
  onTheme(draw);
  return node;
}
