// What was measured where, and what came of it.
function headlineCards(headline, what) {
  const cards = el('div', { class: 'cards' });
  const card = (kind, value, text) => cards.append(el('div', { class: 'card ' + kind }, el('b', {}, value), el('span', {}, text)));
  const interval = (figure) => `95 %: ${figure[2].toFixed(2)} to ${figure[3].toFixed(2)}`;
  const gain = headline.gain;
  if (headline.sizes > 0) {
    const rounds = `(${interval(gain)}; ${count(gain[0], headline.verified ? 'round' : 'sample')})`;
    const name = headline.verified ? 'verified gain' : 'gain in the search, not verified';
    card('hero', timesText(gain[1]), headline.sizes === 1 ? `${name} of ${what}: ${headline.worst} ${bytesText(headline.worstBytes)} ${rounds}`
      : `${name}, geometric mean of ${count(headline.sizes, 'size')} ${headline.byPolicy ? 'that the policy changes' : 'changed'} ${rounds}`);
  }
  if (headline.byPolicy) {
    policyCards(headline, what, card, interval);
  } else if (headline.sizes > 1) {
    judgedCards(headline, card);
    card('', String(headline.leftAlone), `${headline.leftAlone === 1 ? 'size' : 'sizes'} left to the library`);
    card('', timesText(headline.worstGain[1]), `worst: ${headline.worst} ${bytesText(headline.worstBytes)} ${between(headline.worstGain, (value) => value.toFixed(2))}`);
  } else if (headline.sizes === 0 && headline.leftAlone > 0) {
    card('hero', 'Default', `The data support no change: ${count(headline.leftAlone, 'size')} of ${what} stay with the library's own choice`);
  }
  return cards;
}

// Of the sizes that were changed, how many came out how.
function judgedCards(headline, card) {
  card('', String(headline.improved), `of ${headline.sizes} ${headline.byPolicy ? 'changed ' : ''}clearly faster than the library's default`);
  if (headline.tooFew > 0) card('', String(headline.tooFew), `not judged: fewer than six ${headline.verified ? 'rounds' : 'samples'}`);
  if (headline.noDifference > 0 || (headline.tooFew === 0 && !headline.byPolicy)) card('', String(headline.noDifference), 'no clear difference');
  if (headline.slower > 0) card('', String(headline.slower), 'clearly slower');
}

// Only what the policy runs counts; the rest of what was measured is the library's.
function policyCards(headline, what, card, interval) {
  const tried = headline.notKept > 0 ? `; at ${headline.notKept} of them a change was verified and not kept` : '';
  if (headline.sizes === 0 && headline.leftAlone > 0) {
    card('hero', 'Default', `${headline.leftAlone} of ${count(headline.measured, 'size')} of ${what} measured (search or verification) ${headline.leftAlone === 1 ? 'is' : 'are'} left to the library${tried}`);
  }
  if (headline.sizes > 0 && headline.leftAlone > 0) {
    if (headline.all) card('', timesText(headline.all[1]), `over all ${headline.measured} sizes measured: those left to the library count as 1.00 (${interval(headline.all)})`);
    judgedCards(headline, card);
    card('', String(headline.leftAlone), `of ${headline.measured} sizes measured (search or verification) ${headline.leftAlone === 1 ? 'is' : 'are'} left to the library${tried}`);
  } else if (headline.sizes > 1) {
    judgedCards(headline, card);
  }
  if (headline.unverified > 0) card('', String(headline.unverified), `${headline.unverified === 1 ? 'size' : 'sizes'} changed, but not verified with what the policy runs`);
  if (headline.sizes > 1) card('', timesText(headline.worstGain[1]), `worst of what the policy runs: ${headline.worst} ${bytesText(headline.worstBytes)} ${between(headline.worstGain, (value) => value.toFixed(2))}`);
}

function summarySection() {
  const node = section('summary', 'Summary');
  if (DATA.headline.sizes > 0 || DATA.headline.leftAlone > 0 || DATA.headline.unverified > 0) node.append(headlineCards(DATA.headline, 'collectives'));
  if (DATA.iterations.sizes > 0) {
    node.append(el('h3', {}, 'Whole iterations'), headlineCards(DATA.iterations, 'whole iterations'));
  }
  const several = DATA.places.length > 1;
  DATA.places.forEach((place) => {
    const mine = DATA.groups.filter((group) => DATA.places[group.place] === place);
    const range = (get) => {
      const all = [...new Set(mine.map(get))].sort((a, b) => a - b);
      return all.length > 4 ? `${all[0]} to ${all[all.length - 1]}` : all.join(', ');
    };
    const facts = [
      ['Library', [place.library, place.version].filter(Boolean).join(' ') || 'not known'],
      ['Machine', [place.gpu, place.topology].filter(Boolean).join(', ') || 'not known'],
      ['Hosts', place.hosts],
      ['Driver', place.driver],
      ['Ranks', mine.length ? `${range((group) => group.ranks)} on ${range((group) => group.nodes)} ${range((group) => group.nodes) === '1' ? 'node' : 'nodes'}` : ''],
      ['Collectives', [...new Set(mine.map((group) => group.collective))].join(', ')],
      ['Measured', place.first > 0 ? dateText(place.first) + (place.last - place.first > 90 ? ' to ' + dateText(place.last) : '') : ''],
      ['Samples', `${place.samples.toLocaleString('en')} in ${count(place.runs, 'run')}${place.simulated ? ', simulated' : ''}`],
      ['Tool', place.tool],
    ];
    if (several) node.append(el('h3', {}, placeText(place), ' ', place.simulated ? tag('simulated', 'warn') : ''));
    node.append(el('dl', { class: 'facts' }, facts.filter((fact) => fact[1]).flatMap((fact) => [el('dt', {}, fact[0]), el('dd', {}, fact[1])])));
  });
  if (DATA.notes.length) {
    node.append(el('h3', {}, 'Good to know'), el('ul', { class: 'note' }, DATA.notes.map((note) => el('li', {}, note))));
  }
  return node;
}
