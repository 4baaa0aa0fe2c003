// The results of learning jobs, and whether their ranks agreed.
function learningSection() {
  if (DATA.journals.length === 0) return null;
  const node = section('learning', 'Learning in jobs', 'From the journals of jobs: the time of each block of calls over the default’s in the same epoch. Below 1 is faster than the default.');
  if (DATA.learning.length) drawLearning(node);
  else node.append(el('p', {}, 'Nothing was learned in these jobs: no block of calls was compared with the default.'));
  drawAgreement(node);
  const details = el('details', {}, el('summary', {}, count(DATA.journals.length, 'journal')));
  node.append(details);
  makeTable(details, [
    { title: 'Journal', wrap: true, value: (row) => row.name, node: (row) => el('span', { title: row.name }, fileName(row.name, DATA.journals.map((one) => one.name))) },
    { title: 'Host', value: (row) => row.host },
    { title: 'Process', number: true, value: (row) => row.pid },
    { title: 'Communicators', wrap: true, value: (row) => row.communicators },
    { title: 'Decisions', number: true, value: (row) => row.decisions },
    { title: 'Runs', number: true, value: (row) => row.runs },
    { title: 'Rewards', number: true, value: (row) => row.rewards },
    { title: 'Dropped', number: true, value: (row) => row.dropped },
    { title: 'Unreadable lines', number: true, value: (row) => row.badLines },
    { title: 'Ended', value: (row) => (row.ended ? 'in order' : 'cut off') },
  ], 'Journals').show(DATA.journals);
  return node;
}

function drawLearning(node) {
  const view = { at: 0 };
  const note = el('p', { class: 'note' });
  if (DATA.learning.length > 1) {
    node.append(el('div', { class: 'controls' }, control('Context', select(DATA.learning.map((one, at) => [at, one.label]), 0, (at) => {
      view.at = Number(at);
      draw();
    }))));
  }
  node.append(note);
  const plot = makePlot(node, 'Ratio to the default by epoch', 'learning');
  const table = makeTable(node, [
    { title: 'Configuration', value: (row) => configName(row.config), node: (row) => configNode(row.config) },
    { title: 'State', value: (row) => row.state, node: (row) => (row.state ? tag(row.state, row.state === 'in use' ? 'good' : '') : '') },
    { title: 'Median', number: true, value: (row) => row.us, text: (row) => (row.us > 0 ? timeText(row.us) : '–') },
    figureColumn('To default', (row) => row.ratio, (value) => value.toFixed(3)),
    { title: 'Blocks', number: true, value: (row) => row.blocks },
    { title: 'Samples', number: true, value: (row) => row.samples },
    { title: 'Skew of ranks', number: true, value: (row) => row.skew, text: (row) => (row.skew > 0 ? row.skew.toFixed(3) : '–') },
  ], 'Configurations that were tried');
  function draw() {
    const one = DATA.learning[view.at];
    const used = one.arms.filter((arm) => arm.state === 'in use').map((arm) => configName(arm.config));
    note.textContent = `${one.label}: ${count(one.epochs, 'epoch')}, times of ${one.iterations ? 'whole iterations' : 'single calls'}, ` +
      `${used.length ? 'in use at the end: ' + used.join(', ') : 'nothing in use at the end'}` +
      (one.held.length ? `; nothing was agreed in time in ${count(one.held.length, 'epoch')}` : '') + (one.leftOut ? `; ${count(one.leftOut, 'block')} not drawn` : '') + `. ${fileName(one.journal)}`;
    note.title = one.journal;
    plot.render({
      height: 310,
      x: { log: false, label: 'Epoch', text: (value) => String(value), ticks: (scale, room) => ticksOf(scale, { log: false }, Math.min(room, 12)).filter((value) => Number.isInteger(value)) },
      y: { log: true, include: 1, label: 'Time / default’s', text: (value) => String(Number(value.toPrecision(3))) },
      baseline: 1,
      series: one.arms.map((arm, at) => ({
        id: 'arm' + at, arm: arm, colour: configColour(arm.config), width: arm.state === 'in use' ? 2.8 : 1.5, radius: arm.state === 'in use' ? 4 : 3,
        points: one.blocks.filter((block) => block[1] === at && block[2] > 0).map((block) => ({ x: block[0], y: block[2], low: block[2], high: block[2], block: block })),
      })),
      tip: (epoch, here, near) => tipTable('Epoch ' + epoch, here.map((mark) => [mark.series.colour, configName(mark.series.arm.config) + (mark.series.arm.state === 'in use' ? ', in use' : ''),
        mark.point.y.toFixed(3), timeText(mark.point.block[3]), 'n = ' + mark.point.block[4]]), here.indexOf(near)),
    });
    table.show(one.arms);
  }
  onTheme(draw);
  draw();
}

function drawAgreement(node) {
  const one = DATA.agreement;
  if (!one) return;
  node.append(el('h3', {}, 'Did all ranks choose the same?'), el('p', {}, tag(one.agree ? 'agreed' : one.compared ? 'not the same' : 'cannot tell', one.agree ? 'good' : one.compared ? 'bad' : 'warn'), ' ', one.verdict));
  for (const [list, kind] of [[one.problems, 'error'], [one.differences, 'difference'], [one.notes, 'note']]) {
    if (list.length) node.append(el('ul', { class: 'findings' }, list.map((text) => el('li', {}, tag(kind, kind === 'note' ? '' : 'bad'), el('div', {}, text)))));
  }
  if (one.spreads.length === 0) return;
  const details = el('details', {}, el('summary', {}, 'How far the ranks were apart'));
  node.append(details);
  makeTable(details, [
    { title: 'Communicator', value: (row) => row.communicator },
    { title: 'Collective', value: (row) => row.collective },
    { title: 'Size', number: true, value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
    { title: 'Runs', number: true, value: (row) => row.runs },
    { title: 'Slowest rank', number: true, value: (row) => row.us, text: (row) => timeText(row.us) },
    { title: 'Apart', number: true, value: (row) => row.apart, text: (row) => timeText(row.apart) },
    { title: 'Starts apart', number: true, value: (row) => row.starts, text: (row) => (row.starts === null ? '–' : timeText(row.starts)) },
  ], 'How far the ranks were apart').show(one.spreads);
}
