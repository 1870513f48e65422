// Package browser drives headless Chromium for tests of pages.
//
//	b := browser.Open(t)                  // a profile of its own; closed with the test
//	b.Visit(address)
//	b.Until("main", "text")               // polls the page
//	b.Press(kb.Tab); b.Type("#q", "pi")
//	b.Accessible()                        // axe-core finds nothing
//	b.Picture(file)
//
// Each error in the page's console, each violation of its Content-Security-Policy and each request
// to another host fails the test.
//
// axe-core comes from Chromium itself, whose developer tools have it in Lighthouse: nothing is
// downloaded for it, and nothing is copied into this repository.
package browser
