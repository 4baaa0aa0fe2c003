// The page of a tuned job: one section each for the result, the launches that verify it, what was tried, and how.
const JOB_VERDICTS = { faster: 'good', 'nothing to gain': '', 'not confirmed': 'warn', 'metric changed': 'bad', undecided: 'warn' };

function resultSection() {
  const node = section('result', 'Result');
  node.append(el('p', {}, tag(DATA.verdict, JOB_VERDICTS[DATA.verdict]), ' ', DATA.headline));
  if (DATA.gain) {
    const cards = el('div', { class: 'cards' });
    const card = (kind, value, text) => cards.append(el('div', { class: 'card ' + kind }, el('b', {}, value), el('span', {}, text)));
    card('hero', timesText(DATA.gain.value), `as fast, 95 %: ${gainText(DATA.gain.low)} to ${gainText(DATA.gain.high)}`);
    const unit = DATA.unit === 'launch' ? 'a launch' : 'an iteration';
    card('', timeText(DATA.gain.defaultUs), unit + ' with the default');
    card('', timeText(DATA.gain.tunedUs), unit + ' tuned');
    card('', String(DATA.gain.launches), DATA.gain.byPairs ? `${DATA.gain.launches === 1 ? 'pair' : 'pairs'} of fresh launches`
      : `fresh ${DATA.gain.launches === 1 ? 'launch' : 'launches'}, ${count(DATA.gain.changes, 'change')} of turns`);
    node.append(cards);
  }
  if (DATA.metric) node.append(el('h3', {}, 'Metric'), el('p', {}, DATA.metric));
  node.append(el('dl', { class: 'facts' }, DATA.facts.flatMap(([name, text]) => [el('dt', {}, name), el('dd', {}, text)])));
  if (DATA.use) node.append(el('h3', {}, 'Use it'), copyLine(DATA.use.trim(), 'what uses the policy'));
  if (DATA.notes.length) node.append(el('h3', {}, 'Good to know'), el('ul', { class: 'note' }, DATA.notes.map((note) => el('li', {}, note))));
  return node;
}

// A dot with its interval on a line for each row: { name, gain, low, high, colour, hollow }.
function drawGains(box, rows, label, series) {
  const width = box.clientWidth;
  // Names stand beside the dots, or above them where there is no room.
  const beside = width > 640;
  const left = beside ? Math.min(330, Math.round(width * 0.3)) : 0;
  const line = beside ? 27 : 38;
  const height = rows.length * line + 50;
  const known = rows.filter((row) => row.gain > 0);
  const picture = shape('svg', { width: width, height: height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label + '; the table below has the figures' });
  const x = scaleOf({ log: false, include: 1 }, known.flatMap((row) => [row.low, row.high, row.gain]), left + 12, width - 14, 0.06);
  for (const value of ticksOf(x, { log: false }, Math.max(3, Math.floor((width - left) / 100)))) {
    picture.append(shape('line', { class: 'gridline', x1: x(value), x2: x(value), y1: 2, y2: height - 40 }),
      shape('text', { x: x(value), y: height - 24, 'text-anchor': 'middle' }, Number(value.toPrecision(4)) + '×'));
  }
  picture.append(shape('line', { class: 'baseline', x1: x(1), x2: x(1), y1: 2, y2: height - 40 }),
    shape('text', { class: 'axis', x: (left + width) / 2, y: height - 5, 'text-anchor': 'middle' }, 'Times as fast as with the default'));
  rows.forEach((row, at) => {
    const y = at * line + (beside ? 13 : 26);
    picture.append(shape('text', { class: row.bold ? 'row halo' : 'halo', x: 4, y: beside ? y + 6 : y - 9 }, clipText(row.name, beside ? left : width)));
    if (!(row.gain > 0)) return;
    const colour = row.colour;
    const follow = (event) => tip.show(tipTable(row.name, [[colour, 'gain', timesText(row.gain), `[${row.low.toFixed(3)}, ${row.high.toFixed(3)}]`]], 0, row.note || ''), event.clientX, event.clientY);
    picture.append(shape('g', { onpointermove: follow, onpointerleave: () => tip.hide() },
      shape('rect', { x: 0, y: y - (beside ? 11 : 20), width: width, height: line, fill: 'transparent' }),
      shape('line', { class: 'error-bar', x1: x(row.low), x2: x(row.high), y1: y + 2, y2: y + 2, stroke: colour, 'stroke-width': row.bold ? 5 : 3, 'stroke-linecap': 'round', opacity: 0.55 }),
      shape('circle', { class: 'mark', 'data-series': series, cx: x(row.gain), cy: y + 2, r: row.bold ? 6 : 5, fill: row.hollow ? css('--surface') : colour, stroke: colour, 'stroke-width': 2 })));
  });
  box.replaceChildren(picture);
}

const gainNode = (row) => (row.gain > 0 ? el('span', {}, row.gain.toFixed(3), ' ', el('small', {}, `[${row.low.toFixed(3)}, ${row.high.toFixed(3)}]`)) : '–');

function verifiedSection() {
  if (DATA.verified.length === 0) return null;
  // One setting holds for a whole launch where calls are captured in graphs.
  const pairs = DATA.verified.some((one) => one.defaultLaunch > 0);
  const node = section('verified', 'Verified in fresh launches', pairs
    ? 'Calls that are captured in CUDA graphs keep their configuration, so that launches were compared with each other: pairs of one with the default and one with the policy, in alternating order. Shown is the gain of each pair, and below the gain over pairs with its 95 % interval.'
    : 'In each launch the default and the policy took turns; every change of turns gives one figure. Shown is the gain of a launch with the 95 % interval of its own turns, and below the gain over launches, whose interval also has what launches differ by.');
  const box = el('div', { class: 'plot' });
  node.append(box);
  const draw = () => {
    const told = (one) => (pairs ? `with the default launch ${one.defaultLaunch}` : count(one.changes, 'change') + ' of turns');
    const rows = DATA.verified.map((one) => ({ ...one, name: `Launch ${one.launch}: ` + (one.gain > 0 ? told(one) : 'cannot tell'), colour: HUES[theme()][0] }));
    if (DATA.gain) rows.push({ ...DATA.gain, gain: DATA.gain.value, name: `All ${DATA.gain.launches}: mean of ${pairs ? 'pairs' : 'launches'} to come`, bold: true, colour: css('--accent') });
    drawGains(box, rows, 'Gain of each launch', 'launch');
  };
  onWidth(box, draw);
  onTheme(draw);
  makeTable(node, [
    { title: 'Launch', number: true, value: (row) => row.launch },
    { title: 'Gain', number: true, value: (row) => row.gain, node: gainNode },
    { title: 'Default', number: true, value: (row) => row.defaultUs, text: (row) => timeText(row.defaultUs) },
    { title: 'Tuned', number: true, value: (row) => row.tunedUs, text: (row) => timeText(row.tunedUs) },
    pairs ? { title: 'Beside launch', number: true, value: (row) => row.defaultLaunch } : { title: 'Changes', number: true, value: (row) => row.changes },
    { title: 'Iterations', number: true, value: (row) => row.iterations },
    { title: 'Remark', wrap: true, long: true, value: (row) => row.note },
  ], 'Launches that verify').show(DATA.verified);
  if (DATA.gain) node.append(el('p', { class: 'note' }, DATA.gain.next));
  return node;
}

function triedSection() {
  if (DATA.contexts.length === 0) return null;
  const node = section('tried', 'What was tried', 'Every configuration that was judged by whole iterations, against the library’s own choice beside it. What was best here had to be confirmed in fresh launches.');
  DATA.contexts.forEach((context, at) => {
    node.append(el('h3', {}, context.label), el('p', { class: 'note' }, context.facts));
    node.append(el('p', {}, tag(context.kept ? 'in the policy' : 'left to the library', context.kept ? 'good' : ''), ' ', context.outcome));
    if (context.tried.length === 0) return;
    const best = context.kept ? 'chosen' : 'best of the search';
    const box = el('div', { class: 'plot' });
    node.append(box);
    const draw = () => drawGains(box, context.tried.slice(0, 12).map((one) => ({ ...one, name: one.config + (one.chosen ? ` (${best})` : ''), bold: one.chosen,
      colour: one.chosen ? css('--accent') : one.high < 1 ? css('--bad') : css('--default'), hollow: one.low <= 1 && one.high >= 1 })), 'Gain of each configuration', 'tried-' + at);
    onWidth(box, draw);
    onTheme(draw);
    makeTable(node, [
      { title: 'Configuration', wrap: true, value: (row) => row.config },
      { title: 'Gain', number: true, value: (row) => row.gain, node: gainNode },
      { title: context.byLaunches ? 'Launches' : 'Blocks', number: true, value: (row) => row.blocks },
      { title: '', value: (row) => (row.chosen ? best : ''), node: (row) => (row.chosen ? tag(best, context.kept ? 'good' : '') : '') },
    ], 'Tried: ' + context.label).show(context.tried);
  });
  if (DATA.untried.length) node.append(el('h3', {}, 'What could not be tried'), el('ul', {}, DATA.untried.map((text) => el('li', {}, text))));
  return node;
}

function launchesSection() {
  if (DATA.launches.length === 0) return null;
  const node = section('launches', 'Launches of the command', 'Every time the command was started.');
  makeTable(node, [
    { title: 'Launch', number: true, value: (row) => row.number },
    { title: 'Purpose', wrap: true, value: (row) => row.purpose },
    { title: 'Seconds', number: true, value: (row) => row.seconds, text: (row) => row.seconds.toFixed(1) },
    { title: 'Ended', wrap: true, value: (row) => row.ended, node: (row) => (row.bad ? tag(row.ended, 'bad') : row.ended) },
    { title: 'Output', wrap: true, long: true, value: (row) => row.log, node: (row) => el('code', {}, row.log) },
  ], 'Launches').show(DATA.launches);
  return node;
}
