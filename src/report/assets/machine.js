// What failed, what should not be trusted, and the machine.
const SEVERITY = { error: 'bad', warning: 'warn', note: '', ok: 'good' };

function findingList(findings) {
  return el('ul', { class: 'findings' }, findings.map((one) => el('li', {}, tag(one.severity, SEVERITY[one.severity]),
    el('div', {}, el('div', {}, one.title), one.evidence.map((text) => el('div', { class: 'proof mono' }, text)), one.action ? el('div', { class: 'todo' }, '→ ' + one.action) : ''))));
}

function failuresSection() {
  if (DATA.failures.length === 0) return null;
  const node = section('failures', 'Configurations that failed', 'They gave no time, and are nowhere chosen: hang (did not end in time), crash (a rank ended), wrong (wrong results), refused (not on offer here).');
  const table = makeTable(node, [
    { title: 'Outcome', value: (row) => row.outcome, node: (row) => tag(row.outcome, row.outcome === 'refused' ? '' : 'bad') },
    { title: 'Configuration', value: (row) => configName(row.config), node: (row) => configNode(row.config) },
    { title: 'Context', wrap: true, value: (row) => groupText(DATA.groups[row.group]) },
    { title: 'Size', number: true, value: (row) => row.bytes, text: (row) => bytesText(row.bytes) },
    { title: 'Times', number: true, value: (row) => row.count },
    { title: 'Note', long: true, value: (row) => row.note },
  ], 'Configurations that failed');
  table.show(DATA.failures);
  onTheme(table.draw);
  return node;
}

function trustSection() {
  if (DATA.trust.length === 0) return null;
  const node = section('trust', 'Before you believe these figures', 'What `diapason data check` finds in the samples.');
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
    node.append(bad.length ? findingList(bad) : el('p', {}, tag('ok', 'good'), ' Nothing to complain about.'));
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
