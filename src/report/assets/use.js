// How the policy is used: lines with buttons that copy them.
function copyText(text, button) {
  const before = button.textContent;
  const done = (fine) => {
    button.textContent = fine ? 'Copied' : 'Select and copy';
    setTimeout(() => (button.textContent = before), 2000);
  };
  // Pages opened as files may have no clipboard.
  const byHand = () => {
    const field = el('textarea', { class: 'unseen', 'aria-hidden': 'true' });
    field.value = text;
    document.body.append(field);
    field.select();
    const fine = document.execCommand('copy');
    field.remove();
    button.focus();
    done(fine);
  };
  if (navigator.clipboard && isSecureContext) navigator.clipboard.writeText(text).then(() => done(true), byHand);
  else byHand();
}

// A line in a box, with a button.
function copyLine(text, label) {
  const button = el('button', { type: 'button', class: 'copy', 'aria-label': `Copy: ${label}`, onclick: () => copyText(text, button) }, 'Copy');
  return el('div', { class: 'line' }, el('pre', { tabindex: 0, 'aria-label': label }, text), button);
}

function useSection() {
  const use = DATA.use;
  if (!use.policy) return null;
  const node = section('use', 'Use it');
  node.append(el('p', { class: 'note' }, 'The policy'), copyLine(use.policy, 'path of the policy'));
  if (use.lines.length) node.append(el('p', { class: 'note' }, 'In a job'));
  for (const line of use.lines) node.append(copyLine(line, 'line that uses the policy'));
  if (use.remark) node.append(el('p', { class: 'note' }, use.remark));
  return node;
}
