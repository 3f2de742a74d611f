// VitePress refuses links to pages that do not exist. It does not look for the headings that links name.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'

const attributes = (html, name) => [...html.matchAll(new RegExp(`\\s${name}="([^"]*)"`, 'g'))].map(found => found[1].replaceAll('&amp;', '&'))

// checkLinks fails if a link of the built pages leads to no file, or to no heading.
export function checkLinks(dir, base) {
  const pages = new Map(readdirSync(dir, { recursive: true }).filter(name => name.endsWith('.html'))
    .map(name => [name.replaceAll(path.sep, '/'), readFileSync(path.join(dir, name), 'utf8')]))
  const ids = new Map([...pages].map(([name, html]) => [name, new Set(attributes(html, 'id'))]))
  const dead = []
  let links = 0
  for (const [page, html] of pages) {
    for (const href of attributes(html, 'href').filter(link => link.startsWith(base) || link.startsWith('#'))) {
      const [name, anchor] = href.split('#')
      const file = name === '' ? page : target(decodeURI(name.slice(base.length)))
      links++
      if (!existsSync(path.join(dir, file))) dead.push(`${page}: ${href} leads to no file`)
      else if (anchor && !ids.get(file)?.has(decodeURIComponent(anchor))) dead.push(`${page}: ${href} leads to no heading`)
    }
  }
  if (dead.length > 0 || links < 500) throw new Error(`${links} links, ${dead.length} are dead:\n${dead.join('\n')}`)
  console.log(`${pages.size} pages, ${links} links, and none is dead`)
}

function target(name) {
  if (name === '' || name.endsWith('/')) return `${name}index.html`
  return path.extname(name) === '' ? `${name}.html` : name
}
