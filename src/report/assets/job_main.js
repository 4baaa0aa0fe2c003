// Builds the page of a tuned job.
function startJob() {
  readLink();
  startTheme();
  const main = document.getElementById('content');
  const titles = [];
  for (const [make, title] of [[barsSection, 'Iteration'], [resultSection, 'Result'], [verifiedSection, 'Verified'], [triedSection, 'Tried'], [launchesSection, 'Launches']]) {
    const slot = el('div');
    main.append(slot);
    const node = make(slot);
    if (!node) {
      slot.remove();
      continue;
    }
    slot.replaceWith(node);
    titles.push([node.id, title]);
  }
  document.getElementById('toc').append(el('ol', {}, titles.map(([id, title]) => el('li', {}, sectionLink(id, title)))));
  document.getElementById('foot').append(`Written by diapason ${DATA.version}, ${dateText(DATA.made)}. This file needs no network: everything it shows is inside it. Intervals are 95 % intervals.`);
  followLink();
}
startJob();
