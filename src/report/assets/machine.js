// Failures, data that should not be trusted, and the machine.
const SEVERITY = { error: 'bad', warning: 'warn', note: '', ok: 'good' };

function findingList(findings) {
  return el('ul', { class: 'findings' }, findings.map((one) => el('li', {}, tag(one.severity, SEVERITY[one.severity]),
    el('div', {}, el('div', {}, one.title), one.evidence.map((text) => el('div', { class: 'proof mono' }, text)), one.action ? el('div', { class: 'todo' }, '→ ' + one.action) : ''))));
}

function failuresSection() {
  if (DATA.failures.length === 0) return null;
  const node = section('failures', 'Failures', 'Configurations that gave no time, and are nowhere chosen: hang (did not end in time), crash (a rank ended), wrong (wrong results), refused (not on offer here).');
  const rows = failureRows();
  const real = rows.filter((row) => row.outcome !== 'refused');
  const refused = rows.filter((row) => row.outcome === 'refused');
  if (real.length) failureTable(node, real, 'Configurations that failed');
  else node.append(el('p', {}, 'None hung, crashed or computed wrong results.'));
  if (refused.length) {
    const details = el('details', {}, el('summary', {}, `${count(refused.length, 'configuration')} that the library refuses`));
    node.append(details);
    failureTable(details, refused, 'Configurations that the library refuses');
  }
  return node;
}

// A row for every configuration, context and reason, with its sizes as a range.
function failureRows() {
  const rows = new Map();
  for (const one of DATA.failures) {
    const key = JSON.stringify([one.group, one.config, one.outcome, one.note]);
    const row = rows.get(key) || { ...one, count: 0, sizes: [] };
    row.count += one.count;
    row.sizes.push(one.bytes);
    rows.set(key, row);
  }
  for (const row of rows.values()) row.sizes = [...new Set(row.sizes)].sort((a, b) => a - b);
  return [...rows.values()];
}

function failureTable(host, rows, label) {
  const sizes = (row) => (row.sizes.length === 1 ? bytesText(row.bytes) : `${count(row.sizes.length, 'size')}, ${bytesText(row.sizes[0])} to ${bytesText(row.sizes[row.sizes.length - 1])}`);
  const table = makeTable(host, [
    { title: 'Outcome', value: (row) => row.outcome, node: (row) => tag(row.outcome, row.outcome === 'refused' ? '' : 'bad') },
    { title: 'Configuration', wrap: true, value: (row) => configName(row.config), node: (row) => configNode(row.config) },
    { title: 'Context', wrap: true, value: (row) => groupText(DATA.groups[row.group]) },
    { title: 'Sizes', wrap: true, value: (row) => row.sizes[0], text: sizes },
    { title: 'Times', number: true, value: (row) => row.count },
    { title: 'Note', long: true, value: (row) => row.note },
  ], label);
  table.show(rows);
  onTheme(table.draw);
}

function trustSection() {
  if (DATA.trust.length === 0) return null;
  const node = section('trust', 'Trust', 'Before you believe these figures: what `diapason data check` finds in the samples.');
  node.append(findingList(DATA.trust));
  return node;
}

function machineSection() {
  const doctor = DATA.doctor;
  if (!doctor.host && DATA.variables.length === 0 && DATA.runs.length === 0) return null;
  const node = section('machine', 'Machine, runs and environment');
  if (doctor.host) {
    const bad = doctor.findings.filter((one) => one.severity !== 'ok');
    node.append(el('h3', {}, 'The doctor on ' + doctor.host), el('p', { class: 'note' }, `\`diapason doctor\` looked at the machine that wrote this report, ${dateText(DATA.made)}.`),
      el('pre', { class: 'note' }, doctor.machine.join('\n')));
    node.append(bad.length ? findingList(bad) : el('p', {}, tag('ok', 'good'), ' No problems found.'));
    const fine = doctor.findings.filter((one) => one.severity === 'ok');
    if (fine.length) node.append(el('details', {}, el('summary', {}, `${count(fine.length, 'thing')} looked at and fine`), findingList(fine)));
    if (doctor.checklist.length) {
      const details = el('details', {}, el('summary', {}, 'Checklist'));
      node.append(details);
      makeTable(details, [
        { title: 'State', value: (row) => row.state, node: (row) => tag(row.state, row.state === 'ok' ? 'good' : row.state === 'not ok' ? 'bad' : '') },
        { title: 'What', long: true, value: (row) => row.text },
        { title: 'Because', long: true, value: (row) => row.because },
      ], 'Checklist').show(doctor.checklist);
    }
  }
  if (DATA.variables.length) {
    node.append(el('h3', {}, 'Environment variables of the measurements'));
    makeTable(node, [
      { title: 'Variable', value: (row) => row.name, node: (row) => el('code', {}, row.name) },
      { title: 'Value', long: true, value: (row) => row.value, node: (row) => el('code', {}, row.value) },
      { title: 'Set in runs', number: true, value: (row) => row.runs },
      { title: 'Tried on purpose, samples', number: true, value: (row) => row.samples },
    ], 'Environment variables').show(DATA.variables);
  }
  if (DATA.runs.length) {
    const details = el('details', {}, el('summary', {}, count(DATA.runs.length, 'run')));
    node.append(details);
    makeTable(details, [
      { title: 'Run', value: (row) => row.id, node: (row) => el('code', {}, row.id) },
      { title: 'Source', value: (row) => row.source },
      { title: 'Started', value: (row) => row.started, text: (row) => dateText(row.started) },
      { title: 'State', value: (row) => row.state },
      { title: 'Samples', number: true, value: (row) => row.samples },
      { title: 'Where', wrap: true, value: (row) => placeText(DATA.places[row.place]) },
      { title: 'From', long: true, value: (row) => row.origin },
    ], 'Runs').show(DATA.runs);
  }
  return node;
}
