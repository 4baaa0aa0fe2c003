// The verification: default and tuned configuration, measured alternately.
const VERDICTS = { faster: 'good', slower: 'bad', failed: 'bad', 'too few rounds': 'warn' };

function gainsSection() {
  const groups = collectiveGroups().filter((group) => group.verified.length);
  if (groups.length === 0) return null;
  const node = section('gains', 'Verified gain',
    'The library’s default and a configuration chosen for the size took turns. A gain is the default’s time over the other’s in the same round; shown are the median of the rounds and its 95 % interval. Above 1 is faster.');
  if (groups.some((group) => group.verified.some((one) => !one.kept))) {
    node.append(el('p', { class: 'note', 'data-role': 'not-kept' }, tag('not kept'), ' (grey in the plot): verified, but not what the policy runs at this size. It is not in the summary’s figures.'));
  }
  contextControls(node);
  const plot = makePlot(node, 'Verified gain by message size', 'gains');
  // If each collective occurs once, its name is enough.
  const named = new Set(groups.map((group) => group.collective)).size === groups.length;
  const columns = [
    named ? { title: 'Collective', value: (row) => row.group.collective } : { title: 'Context', wrap: true, value: (row) => groupText(row.group) },
    { title: 'Size', number: true, value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
    { title: 'Verdict', value: (row) => row.verdict, node: (row) => tag(row.verdict, VERDICTS[row.verdict]) },
    figureColumn('Gain', (row) => row.gain, gainText),
    figureColumn('Library default', (row) => row.standard, timeText),
    figureColumn('Tuned', (row) => row.tuned, timeText),
    { title: 'Rounds', number: true, value: (row) => (row.gain ? row.gain[0] : row.standard ? row.standard[0] : 0) },
    { title: 'Configuration', wrap: true, value: (row) => configName(row.config), node: (row) => configNode(row.config) },
  ];
  const table = makeTable(node, groups.length > 1 ? columns : columns.slice(1), 'Verification, size by size', 'narrow');
  const rows = groups.flatMap((group) => group.verified.map((one) => ({ ...one, group: group })));
  live(() => {
    const group = DATA.groups[state.group];
    const points = group.verified.filter((one) => one.gain).map((one) => ({
      x: one.bytes, y: one.gain[1], low: one.gain[2], high: one.gain[3], figure: one.gain, one: one,
      colour: one.kept ? configColour(one.config) : css('--muted'), hollow: one.verdict !== 'faster' && one.verdict !== 'slower',
    }));
    plot.render({
      height: 290,
      x: { log: true, label: 'Message size', text: aboutBytes },
      y: { log: true, include: 1, label: 'Gain, default / tuned', text: (value) => Number(value.toPrecision(3)) + '×' },
      baseline: 1,
      series: [{ id: 'gain', colour: css('--accent'), line: false, radius: 5, points: points }],
      tip(bytes, here, near) {
        const one = near.point.one;
        return tipTable(`${bytesText(bytes)}: ${configName(one.config)}`, [
          [configColour(one.config), 'gain', timesText(one.gain[1]), between(one.gain, gainText), 'n = ' + one.gain[0]],
          [configColour(0), 'library default', timeText(one.standard[1]), timeInterval(one.standard), 'n = ' + one.standard[0]],
          [one.kept ? css('--accent') : css('--muted'), one.kept ? 'tuned' : 'tried', timeText(one.tuned[1]), timeInterval(one.tuned), 'n = ' + one.tuned[0]],
        ], 0, one.kept ? one.verdict : `${one.verdict}: the policy ${one.runs > 0 ? 'runs ' + configName(one.runs) + ' here' : 'leaves this size to the library'}`);
      },
    });
    table.show(rows);
  });
  return node;
}
