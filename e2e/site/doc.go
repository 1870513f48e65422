// Package site tests the docs as a site, as `make site` builds it: each page of docs is there, its
// links lead to pages and headings, the search finds words, and axe-core finds nothing.
//
// A link to a page that isn't there fails the build itself, by the layout render-link.
package site
