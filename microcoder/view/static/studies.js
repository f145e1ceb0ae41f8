// Studies: the report that was written of each, with its figures.

import { answer } from './api.js';
import { figureOf } from './bench.js';
import { empty, fill, h, seen } from './dom.js';
import { markdown } from './markdown.js';
import { link } from './route.js';

export async function studiesPage(root) {
  const list = await answer('list');
  const body = h('div');
  fill(root, h('h1', {}, 'Studies'), body);

  async function update(now) {
    if (!list.studies.length) {
      return fill(body, empty('No studies yet', 'Nothing under this folder holds a report.json. Studies are written to studies-out, unless --out names another folder; `microcoder view studies-out` shows them. A study is run and reported by:', h('code', {}, 'microcoder study --help')));
    }
    const names = list.studies.map((one) => one.name);
    const others = names.length > 1 ? h('ul', {}, names.map((name) => h('li', {}, h('a', { href: link('/studies', { study: name }), 'aria-current': name === now.study ? 'true' : null }, seen(name))))) : null;
    if (!now.study && names.length > 1) return fill(body, others);
    const found = await answer('study', { study: now.study ?? names[0] });
    fill(body, others, h('p', { class: 'quiet' }, seen(found.name)), h('article', { class: 'report' }, markdown(found.report || 'There is no report.md beside report.json: `microcoder study report` writes it there, unless -o names another place.', figureOf(found.name))));
  }

  return { update };
}
