// How the search came to its result: the best known gain after some time.
function progressSection() {
  const groups = collectiveGroups().filter((group) => group.progress.length > 1);
  if (groups.length === 0) return null;
  const node = section('progress', 'History of the search',
    'The geometric mean over the sizes of the default’s time over that of the fastest configuration sampled so far, each with the median of all its samples. It is the gain in the search, which the verification may not confirm.');
  contextControls(node);
  const plot = makePlot(node, 'Best gain in the search by time', 'progress');
  const said = el('p', { class: 'note', 'data-role': 'best' });
  node.append(said);
  live(() => {
    const group = DATA.groups[state.group];
    const steps = group.progress;
    // A staircase: the gain stays until the next step.
    const timed = steps.length > 0 && steps[steps.length - 1][0] > 0;
    const points = steps.map((step) => ({ x: step[timed ? 0 : 1], y: step[2], low: step[2], high: step[2], step: step }));
    const stairs = points.flatMap((point, at) => (at ? [{ ...point, y: points[at - 1].y, low: points[at - 1].y, high: points[at - 1].y }, point] : [point]));
    const end = steps[steps.length - 1];
    const best = steps.find((step) => step[2] >= end[2]) || [0, 0, 1];
    said.textContent = steps.length < 2 ? 'Of this context the times of the samples are not known, or nothing was faster.'
      : `${timesText(end[2])} was found after ${timed ? durationText(best[0]) + ' and ' : ''}${count(best[1], 'sample')}, of ${timed ? durationText(end[0]) + ' and ' : ''}${count(end[1], 'sample')} in the search.`;
    plot.render({
      height: 260,
      x: { log: false, floor: 0, label: timed ? 'Seconds since the first sample' : 'Samples', text: (value) => String(Number(value.toPrecision(3))), ticks: (scale, room) => ticksOf(scale, { log: false }, room).filter((value) => value >= 0) },
      y: { log: false, include: 1, label: 'Best gain so far', text: (value) => Number(value.toPrecision(3)) + '×' },
      baseline: 1,
      series: [{ id: 'progress', name: 'best so far', colour: css('--accent'), width: 2.4, radius: 2.6, bars: false, points: stairs }],
      tip: (at, here, near) => tipTable(timed ? durationText(at) : count(at, 'sample'), [[css('--accent'), 'best so far', timesText(near.point.step[2]), count(near.point.step[1], 'sample')]], 0),
    });
  });
  return node;
}
