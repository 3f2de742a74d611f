// The pages as a site: make site. They are plain Markdown and read as well without it, so links keep the form that a forge follows.
import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { checkLinks } from '../check-links.mjs'

const root = path.resolve(process.cwd(), '../..')
const text = name => readFileSync(path.join(root, name), 'utf8')
const module = text('go.mod').match(/^module (.*)$/m)[1]

// The first page of a folder is its README.
const rewrites = {
  'README.md': 'index.md',
  'docs/README.md': 'docs/index.md',
  'docs/recipes/README.md': 'docs/recipes/index.md',
  'docs/decisions/README.md': 'docs/decisions/index.md',
  'deploy/chart/README.md': 'deploy/chart/index.md'
}

// pageLink turns the link of a page into an absolute one: to another page, or to a file of the repository where its module is hosted.
function pageLink(href, from) {
  if (/^([a-z][a-z0-9+.-]*:|\/\/|#)/i.test(href)) return href
  const [name, anchor] = href.split('#')
  const target = path.relative(root, path.resolve(path.dirname(from), decodeURI(name)))
  const hash = anchor ? `#${anchor}` : ''
  const kind = statSync(path.join(root, target)).isDirectory() ? 'tree' : 'blob' // throws if it does not exist
  return target.endsWith('.md') && !excluded(target) ? `/${rewrites[target] ?? target}${hash}` : `https://${module}/${kind}/main/${target}`
}

const excluded = page => page.startsWith('test/')

function absoluteLinks(md) {
  md.core.ruler.push('absolute-links', ({ tokens, env }) => {
    for (const token of tokens.flatMap(t => t.children ?? [])) {
      if (token.type === 'link_open') token.attrSet('href', pageLink(token.attrGet('href'), env.realPath ?? env.path))
    }
  })
}

// The rule of forges by which links name headings: test/links_test.go has the same.
const slugify = heading => heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')

// sidebar has the sections and links of docs/README.md.
function sidebar() {
  return text('docs/README.md').split(/^## /m).slice(1).map(section => {
    const items = []
    for (const [, title, href] of section.matchAll(/^\* \[(.*?)\]\((.*?)\)/gm)) {
      items.push({ text: title, link: pageLink(href, path.join(root, 'docs/README.md')).replace(/(index)?\.md$/, '') })
    }
    return { text: section.split('\n')[0], items }
  })
}

// vueOfPages looks for Vue in this folder: the pages are outside of it.
function vueOfPages(source, importer) {
  if (/^vue(\/|$)/.test(source) && /\.md$/.test(importer)) return this.resolve(source, path.resolve('package.json'), { skipSelf: true })
}

export default {
  title: 'flex-provisioner',
  description: 'A Kubernetes storage provisioner in which the unit of provisioning is a container image',
  srcDir: root,
  srcExclude: ['test/**', 'bin/**', 'docs/site/**', 'deploy/mine/**'],
  outDir: path.join(root, 'bin/site'),
  cacheDir: 'node_modules/.cache',
  base: process.env.SITE_BASE ?? '/',
  rewrites,
  vite: { plugins: [{ name: 'vue-of-pages', enforce: 'pre', resolveId: vueOfPages }] },
  buildEnd: ({ outDir }) => checkLinks(outDir, process.env.SITE_BASE ?? '/'),
  markdown: { html: false, linkify: false, attrs: { disable: true }, emoji: { enabled: [] }, anchor: { slugify }, config: absoluteLinks },
  themeConfig: {
    nav: [{ text: 'Documentation', link: '/docs/' }],
    sidebar: sidebar(),
    outline: [2, 3],
    search: { provider: 'local' }
  }
}
