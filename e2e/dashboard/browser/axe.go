package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
)

// lighthouse is a script of Chromium's developer tools that has axe-core in a template literal.
const lighthouse = "devtools://devtools/bundled/third_party/lighthouse/lighthouse-dt-bundle.js"

// axe is the source of axe-core.
var axe = sync.OnceValues(func() (string, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(program()))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, stopTab := chromedp.NewContext(allocator)
	defer stopTab()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var bundle, source string
	err := chromedp.Run(ctx, chromedp.Navigate(lighthouse), chromedp.Evaluate("document.documentElement.innerText", &bundle))
	if err != nil {
		return "", err
	}
	literal, err := literalFrom(bundle, "`/*! axe v")
	if err != nil {
		return "", err
	}
	return source, chromedp.Run(ctx, chromedp.Evaluate(literal, &source))
})

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
	source, err := axe()
	if err != nil {
		b.t.Fatal(err)
	}
	var result struct {
		URL        string
		Passes     []struct{ ID string }
		Violations []violation
	}
	b.Script(fmt.Sprintf("(async () => { if (!window.axe) { %s } return await window.axe.run(document) })()", source), &result)
	if len(result.Passes) < 10 { // rules; else it hasn't looked
		b.t.Errorf("%s: axe-core has checked %d rules only", result.URL, len(result.Passes))
	}
	for _, v := range result.Violations {
		for _, n := range v.Nodes {
			b.t.Errorf("%s: %s (%s): %s\n  %s\n  %s", result.URL, v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
}
