// Builds the page.
function start() {
  readLink();
  prepareData();
  startTheme();
  const main = document.getElementById('content');
  // The headline's subject comes first.
  const worth = (group) => (group.place === DATA.headline.place ? 2 : 0) + (group.verified.length ? 1 : 0);
  const first = collectiveGroups().reduce((best, group) => (best && worth(best) >= worth(group) ? best : group), null);
  if (first) state.group = state.first = DATA.groups.indexOf(first);
  const asked = DATA.groups[Number(recalled('context', '-1'))];
  if (collectiveGroups().includes(asked)) state.group = DATA.groups.indexOf(asked);
  if (DATA.simulated > 0) {
    main.prepend(el('p', { class: 'banner', id: 'simulated' }, DATA.simulated === DATA.samples ? 'SIMULATED: every figure of this page comes from a simulated cluster, none was measured.'
      : `SIMULATED in part: ${DATA.simulated.toLocaleString('en')} of ${DATA.samples.toLocaleString('en')} samples come from a simulated cluster. They are called simulated wherever they are shown, and are not in the headline.`));
  }
  const titles = [];
  const add = (make, title) => {
    const slot = el('div');
    main.append(slot); // sections measure their own width, so their place has to exist first
    const node = make(slot);
    if (!node) {
      slot.remove();
      return;
    }
    slot.replaceWith(node);
    titles.push([node.id, title]);
  };
  // What matters most: the picture, what runs, how to use it.
  add(pictureSection, 'Picture');
  add(mapSection, 'Decision map');
  add(useSection, 'Use it');
  add(summarySection, 'Summary');
  const doubt = DATA.trust.some((one) => one.severity === 'error');
  if (doubt) add(trustSection, 'Trust');
  add(gainsSection, 'Verified gain');
  add(curvesSection, 'Time by size');
  add(spreadSection, 'Distribution');
  add(progressSection, 'Search');
  add(regretSection, 'Regret');
  add(iterationsSection, 'Iterations');
  add(learningSection, 'Learning');
  if (!doubt) add(trustSection, 'Trust');
  add(failuresSection, 'Failures');
  add(machineSection, 'Machine');
  add(rawSection, 'All figures');
  document.getElementById('toc').append(el('ol', {}, titles.map(([id, title]) => el('li', {}, sectionLink(id, title)))));
  document.getElementById('foot').append(`Written by diapason ${DATA.version}, ${dateText(DATA.made)}. This file needs no network: everything it shows is inside it. Intervals are 95 % intervals of the median; with fewer than six samples they are the range of the samples.`);
}
start();
followLink();
