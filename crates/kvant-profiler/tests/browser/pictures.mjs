// Pictures of pages for visual inspection: wide and narrow, light and dark.

import { access, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

export async function takePictures(open, dir) {
  const pictures = join(dir, '..', 'pictures');
  await mkdir(pictures, { recursive: true });
  const [made, difference, real] = ['made-up', 'made-up-difference', 'real'].map((name) => join(dir, `${name}.html`));
  const hasReal = await access(real).then(() => true, () => false);
  for (const [width, height] of [[390, 844], [1280, 800], [1920, 1080]]) {
    for (const colorScheme of ['light', 'dark']) {
      const name = (what) => join(pictures, `${what}-${width}-${colorScheme}.png`);
      const settings = { viewport: { width, height }, colorScheme };
      let page = await open(made, settings);
      await page.page.screenshot({ path: name('cpu') });
      await page.choose('contention');
      await page.drag(11, 13.98);
      await page.page.screenshot({ path: name('contention-range') });
      await page.choose('cpu');
      await page.drag(26.5, 30.4, { isSecond: true });
      await page.search('memtable');
      await page.page.screenshot({ path: name('ranges'), fullPage: true });
      await page.search('');
      await page.page.click('#tab-table');
      await page.page.screenshot({ path: name('tables'), fullPage: true });
      await page.page.click('#help-button');
      await page.page.screenshot({ path: name('help') });
      page = await open(difference, settings);
      await page.page.hover('#flame', { position: { x: 300, y: 160 } });
      await page.page.screenshot({ path: name('difference'), fullPage: true });
      if (hasReal) {
        page = await open(real, settings);
        await page.page.screenshot({ path: name('real'), fullPage: true });
        await page.page.click('#tab-reversed');
        await page.search('write');
        await page.page.screenshot({ path: name('real-reversed'), fullPage: true });
      }
    }
  }
}
