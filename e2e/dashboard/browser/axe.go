package browser

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/chromedp/chromedp"
)

// lighthouse is a script of Chromium's developer tools that has axe-core in a template literal.
const lighthouse = "devtools://devtools/bundled/third_party/lighthouse/lighthouse-dt-bundle.js"

// axe is the source of axe-core, once it was read.
var axe struct {
	sync.Mutex
	source string
}

// axe returns the source of axe-core, which it reads in a tab of its own.
func (b *Browser) axe() string {
	b.t.Helper()
	axe.Lock()
	defer axe.Unlock()
	if axe.source != "" {
		return axe.source
	}
	ctx, closeTab := chromedp.NewContext(b.ctx)
	defer closeTab()
	tab := &Browser{t: b.t, ctx: ctx}
	var bundle string
	tab.do("read Lighthouse", chromedp.Navigate(lighthouse), chromedp.Evaluate("document.documentElement.innerText", &bundle))
	literal, err := literalFrom(bundle, "`/*! axe v")
	if err != nil {
		b.t.Fatal(err)
	}
	tab.do("read axe-core", chromedp.Evaluate(literal, &axe.source))
	return axe.source
}

// literalFrom returns the template literal that begins so.
func literalFrom(script, beginning string) (string, error) {
	start := strings.Index(script, beginning)
	if start < 0 {
		return "", errors.New("this Chromium's Lighthouse has no axe-core")
	}
	for end := start + 1; end < len(script); end++ {
		switch script[end] {
		case '\\':
			end++
		case '`':
			return script[start : end+1], nil
		}
	}
	return "", errors.New("the literal doesn't end")
}

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// Accessible fails the test for each violation that axe-core finds in the page: rules of WCAG 2.2 A
// and AA, and best practices.
func (b *Browser) Accessible() {
	b.t.Helper()
	b.accessible("{}", 10)
}

// Readable looks at the contrast of the page's text alone.
func (b *Browser) Readable() {
	b.t.Helper()
	b.accessible(`{runOnly: ["color-contrast"]}`, 1)
}

// AccessibleLayout looks at all but the contrast.
func (b *Browser) AccessibleLayout() {
	b.t.Helper()
	b.accessible(`{rules: {"color-contrast": {enabled: false}}}`, 10)
}

// accessible runs axe-core with its options. If fewer rules hold, it hasn't looked.
func (b *Browser) accessible(options string, atLeast int) {
	b.t.Helper()
	var there bool
	if b.Script("!!window.axe", &there); !there {
		b.Script(b.axe()+";0", nil)
	}
	var result struct {
		URL        string
		Passes     []struct{ ID string }
		Violations []violation
	}
	// of an element, only what the problems below name
	b.Script(fmt.Sprintf(`axe.run(document, {resultTypes: ["violations"], ...%s})`, options), &result)
	if len(result.Passes) < atLeast {
		b.t.Errorf("%s: axe-core has checked %d rules only", result.URL, len(result.Passes))
	}
	for _, v := range result.Violations {
		for _, n := range v.Nodes {
			b.t.Errorf("%s: %s (%s): %s\n  %s\n  %s", result.URL, v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
}
