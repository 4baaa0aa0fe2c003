// What was measured where, and the results.
const FEW = 6; // samples have no 95 % interval

function intervalText(headline, figure) {
  if (headline.tooFew === 0) return `95 %: ${gainText(figure[2])} to ${gainText(figure[3])}`;
  return `no 95 % interval: ${headline.tooFew === headline.sizes ? '' : headline.tooFew + ' of ' + headline.sizes + ' with '}fewer than six ${headline.verified ? 'rounds' : 'samples'} a size`;
}
function worstText(headline) {
  const gain = headline.worstGain;
  return (gain[0] > 1 && gain[0] < FEW ? `range of ${gain[0]} ${headline.verified ? 'rounds' : 'samples'} ` : '') + between(gain, gainText);
}

// The other libraries: never pooled with the first, a line each.
function otherLines(headlines, what) {
  if (headlines.length === 0) return '';
  return el('ul', { class: 'others' }, headlines.map((headline) => el('li', {}, el('b', {}, placeText(DATA.places[headline.place])), ': ',
    headline.sizes > 0 ? `${timesText(headline.gain[1])} ${headline.verified ? 'verified' : 'in the search, not verified'}, ${headline.sizes === 1 ? `${headline.worst} ${bytesText(headline.worstBytes)}` : 'geometric mean of ' + headline.changedText} (${intervalText(headline, headline.gain)})`
      : headline.leftAlone > 0 ? `${headline.leftText} of ${what} left to the library${headline.onlyDefault === headline.leftAlone ? '; nothing else was measured' : ''}` : `${count(headline.unverified, 'size')} changed, not verified`)));
}

// Cards with a number and a few words each; a sentence that belongs to a card stands below them.
function makeCards(id) {
  const cards = el('div', { class: 'cards', id: id || null });
  const notes = el('ul', { class: 'note card-notes' });
  const card = (kind, value, label, note) => {
    cards.append(el('div', { class: 'card ' + kind }, el('b', {}, value), el('span', {}, label)));
    if (note) notes.append(el('li', {}, note));
  };
  return { card: card, done: () => el('div', {}, cards, notes.children.length ? notes : '') };
}

// Results of the journals, the ranks' agreement first.
function journalCards() {
  const { card, done } = makeCards('journal-cards');
  const one = DATA.agreement;
  if (one) card('hero' + (one.compared && !one.agree ? ' alarm' : ''), one.agree ? 'Agreed' : one.compared ? 'Not the same' : 'Cannot tell', 'choices of the ranks', one.verdict);
  const sum = (name) => DATA.journals.reduce((all, journal) => all + journal[name], 0);
  card('', String(DATA.journals.length), `${DATA.journals.length === 1 ? 'journal' : 'journals'} of ${count(new Set(DATA.journals.map((journal) => journal.host)).size, 'host')}`);
  for (const [name, text] of [['decisions', 'decisions'], ['runs', 'calls that ran'], ['rewards', 'rewards']]) if (sum(name) > 0) card('', sum(name).toLocaleString('en'), text);
  const changed = DATA.learning.filter((learning) => learning.arms.some((arm) => arm.config !== 0 && arm.state === 'in use')).length;
  if (DATA.learning.length) card('', `${changed} of ${DATA.learning.length}`, `${DATA.learning.length === 1 ? 'context' : 'contexts'} changed`, `Of ${count(DATA.learning.length, 'context')} learned, ${changed} ended with something else than the library's default.`);
  return done();
}

function headlineCards(headline, what) {
  const { card, done } = makeCards();
  const interval = (figure) => intervalText(headline, figure);
  const gain = headline.gain;
  if (headline.sizes > 0) {
    const rounds = `${interval(gain)}; ${count(gain[0], headline.verified ? 'round' : 'sample')}`;
    const name = headline.verified ? 'Verified gain' : 'Gain in the search, not verified';
    card('hero', timesText(gain[1]), headline.verified ? 'verified gain' : 'in the search, not verified',
      headline.sizes === 1 ? `${name} of ${what}: ${headline.worst} ${bytesText(headline.worstBytes)} (${rounds}).`
        : `${name} of ${what}: geometric mean of ${headline.changedText} ${headline.byPolicy ? 'that the policy changes' : 'changed'} (${rounds}).`);
  }
  if (headline.byPolicy) {
    policyCards(headline, what, card, interval);
  } else if (headline.sizes > 1) {
    judgedCards(headline, card);
    card('', String(headline.leftAlone), 'left to the library', `${headline.leftText} left to the library.`);
    worstCard(headline, card);
  } else if (headline.sizes === 0 && headline.leftAlone > 0) {
    const alone = headline.onlyDefault === headline.leftAlone;
    const some = headline.onlyDefault > 0 ? `; at ${headline.onlyDefault} of them nothing else was measured` : '';
    card('hero', 'Default', alone ? 'nothing else was measured' : 'no change supported', alone ? `Nothing else was measured: ${headline.leftText} of ${what} with the library's own choice, and no other to compare it with.`
      : `The data support no change: ${headline.leftText} of ${what} stay with the library's own choice${some}.`);
  }
  return done();
}

function worstCard(headline, card) {
  card('', timesText(headline.worstGain[1]), 'worst size', `Worst${headline.byPolicy ? ' of what the policy runs' : ''}: ${headline.worst} ${bytesText(headline.worstBytes)}, ${timesText(headline.worstGain[1])} ${worstText(headline)}.`);
}

// The changed sizes by result.
function judgedCards(headline, card) {
  card('', `${headline.improved} of ${headline.sizes}`, 'clearly faster');
  if (headline.tooFew > 0) card('', String(headline.tooFew), 'not judged', `Not judged: ${count(headline.tooFew, 'size')} with fewer than six ${headline.verified ? 'rounds' : 'samples'}.`);
  if (headline.noDifference > 0 || (headline.tooFew === 0 && !headline.byPolicy)) card('', String(headline.noDifference), 'no clear difference');
  if (headline.slower > 0) card('', String(headline.slower), 'clearly slower');
}

// Only what the policy runs counts; the rest is left to the library.
function policyCards(headline, what, card, interval) {
  const tried = headline.notKept > 0 ? `; at ${headline.notKept} of them a change was verified and not kept` : '';
  const left = `${headline.leftAlone} of ${headline.measuredText} measured (search or verification) ${headline.leftAlone === 1 ? 'is' : 'are'} left to the library${tried}.`;
  if (headline.sizes === 0 && headline.leftAlone > 0) card('hero', 'Default', 'left to the library', `Of ${what}, ${left}`);
  if (headline.sizes > 0 && headline.leftAlone > 0) {
    if (headline.all) card('', timesText(headline.all[1]), 'over all sizes', `${timesText(headline.all[1])} over all ${headline.measuredText} measured: those left to the library count as 1.00 (${interval(headline.all)}).`);
    judgedCards(headline, card);
    card('', String(headline.leftAlone), 'left to the library', left);
  } else if (headline.sizes > 1) {
    judgedCards(headline, card);
  }
  if (headline.unverified > 0) card('', String(headline.unverified), 'not verified', `${count(headline.unverified, 'size')} changed, but not verified with what the policy runs.`);
  if (headline.sizes > 1) worstCard(headline, card);
}

function summarySection() {
  const node = section('summary', 'Summary');
  if (DATA.journals.length && (DATA.samples === 0 || (DATA.agreement && !DATA.agreement.agree))) node.append(journalCards());
  const named = (headline) => (DATA.places.length > 1 ? el('p', { class: 'of' }, 'With ', el('b', {}, placeText(DATA.places[headline.place])), ':') : '');
  if (DATA.headline.sizes > 0 || DATA.headline.leftAlone > 0 || DATA.headline.unverified > 0) {
    node.append(named(DATA.headline), headlineCards(DATA.headline, 'collectives'), otherLines(DATA.otherHeadlines, 'collectives'));
  }
  if (DATA.iterations.sizes > 0) {
    node.append(el('h3', {}, 'Whole iterations'), named(DATA.iterations), headlineCards(DATA.iterations, 'whole iterations'), otherLines(DATA.otherIterations, 'whole iterations'));
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
