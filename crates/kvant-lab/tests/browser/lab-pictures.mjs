// Pictures of pages of the lab for visual inspection and for the documentation.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

export async function takePictures(open, dir, drag) {
  const pictures = join(dir, '..', 'pictures');
  await mkdir(pictures, { recursive: true });
  for (const [width, height] of [[390, 844], [1280, 860]]) {
    for (const colorScheme of ['light', 'dark']) {
      for (const language of ['report', 'report-ru']) {
        const { page } = await open(join(dir, `${language}.html`), { viewport: { width, height }, colorScheme });
        const path = (what) => join(pictures, `lab-${what}-${language === 'report' ? 'en' : 'ru'}-${width}-${colorScheme}.png`);
        await page.screenshot({ path: path('top') });
        await page.addStyleTag({ content: '#bar { position: static !important; } section { content-visibility: visible !important; }' });
        for (const section of ['curves', 'spectra', 'figures', 'comparisons', 'sweeps', 'known', 'layers', 'observations']) {
          await page.locator(`#${section}`).screenshot({ path: path(section) });
        }
        await drag(page, 2.4, 4.8);
        await page.locator('#times').screenshot({ path: path('times') });
        await page.click('[data-mode="difference"]');
        await page.locator('#flames').screenshot({ path: path('difference') });
        await page.evaluate(() => scrollTo(0, 0));
        await page.screenshot({ path: path('page'), fullPage: true });
      }
    }
  }
}
