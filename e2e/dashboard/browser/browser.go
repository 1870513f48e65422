package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Browser is a tab in a Chromium of its own.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	host     string
	expected []string
}

// patience is how long a page may take for what it is to show.
const patience = 2 * time.Minute

// Open starts Chromium.
func Open(t testing.TB) *Browser {
	t.Helper()
	if !CanRun() {
		t.Skip("no Chromium")
	}
	// root has no sandbox
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath(program()),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(patience))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stopTab := chromedp.NewContext(allocator, chromedp.WithBrowserOption(chromedp.WithDialTimeout(patience)))
	t.Cleanup(func() {
		stopTab()
		stop()
	})
	b := &Browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, b.listen)
	b.do("start", network.Enable(), log.Enable(), runtime.Enable())
	b.Window(1280, 800)
	return b
}

// Expect has errors of the console that have this text pass.
func (b *Browser) Expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

// listen fails the test for what no page may do.
func (b *Browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complain("exception: " + e.ExceptionDetails.Error())
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError {
			b.complain(fmt.Sprintf("console: %s %s", e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		address, err := url.Parse(e.Request.URL)
		if b.mu.Lock(); err == nil && b.host != "" && strings.HasPrefix(address.Scheme, "http") && address.Host != b.host {
			b.t.Errorf("the page asks %s", e.Request.URL)
		}
		b.mu.Unlock()
	}
}

func (b *Browser) complain(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, expected := range b.expected {
		if strings.Contains(text, expected) {
			return
		}
	}
	b.t.Error(text)
}

func (b *Browser) do(what string, actions ...chromedp.Action) {
	b.t.Helper()
	if err := b.try(actions...); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

func (b *Browser) try(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	// The tab belongs to its context: what ends this one must not close it.
	done := make(chan error, 1)
	go func() { done <- chromedp.Run(b.ctx, actions...) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Visit opens an address, and returns when the page has loaded.
func (b *Browser) Visit(address string) {
	b.t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	if parsed.Host != b.host {
		b.Leave() // the page before may ask its own server again until then
	}
	b.mu.Lock()
	b.host = parsed.Host
	b.mu.Unlock()
	b.do("visit "+address, chromedp.Navigate(address))
}

// Leave closes the page, as one does before its server ends: a stream that breaks off is an error
// of the console.
func (b *Browser) Leave() {
	b.t.Helper()
	b.do("leave", chromedp.Navigate("about:blank"))
}

// Reload reloads the page.
func (b *Browser) Reload() {
	b.t.Helper()
	b.do("reload", chromedp.Reload())
}

// Back goes back in the history.
func (b *Browser) Back() {
	b.t.Helper()
	b.Script("history.back()", nil)
}

// Script evaluates JavaScript in the page, into a value.
func (b *Browser) Script(script string, into any) {
	b.t.Helper()
	b.do(script, evaluate(script, into))
}

func evaluate(script string, into any) chromedp.Action {
	return chromedp.Evaluate(script, into, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) })
}

// read evaluates an expression that changes nothing: again if another page has come meanwhile.
func (b *Browser) read(expression string, into any) {
	b.t.Helper()
	var err error
	b.poll(func() bool {
		err = b.try(evaluate(expression, into))
		return !isPageReplaced(err)
	}, func() string { return fmt.Sprintf("%s: %v", expression, err) })
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// isPageReplaced reports whether an expression has no value as its page is gone, by what Chromium
// says: Blink's inspector has no codes for that.
func isPageReplaced(err error) bool {
	return err != nil && slices.ContainsFunc([]string{
		"Inspected target navigated or closed", "Execution context was destroyed", "Cannot find context with specified id",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// Text of an element; empty: it isn't there.
func (b *Browser) Text(selector string) (text string) {
	b.t.Helper()
	b.read(fmt.Sprintf("(document.querySelector(%q) || {}).innerText || ''", selector), &text)
	return text
}

// Until waits until an element has all of the texts.
func (b *Browser) Until(selector string, texts ...string) {
	b.t.Helper()
	text := ""
	b.poll(func() bool {
		text = b.Text(selector)
		for _, want := range texts {
			if !strings.Contains(text, want) {
				return false
			}
		}
		return text != ""
	}, func() string { return fmt.Sprintf("%s has not %q but:\n%s", selector, texts, text) })
}

// Gone waits until an element isn't there.
func (b *Browser) Gone(selector string) {
	b.t.Helper()
	b.Is(fmt.Sprintf("!document.querySelector(%q)", selector))
}

// Is waits until an expression is true.
func (b *Browser) Is(expression string) {
	b.t.Helper()
	b.poll(func() bool {
		var is bool
		b.read("!!("+expression+")", &is)
		return is
	}, func() string { return "it isn't so: " + expression })
}

func (b *Browser) poll(condition func() bool, problem func() string) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(b.ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		b.t.Fatal(problem())
	}
}

// Press presses keys, one after the other: characters, or those of package kb.
func (b *Browser) Press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		// chromedp's event types the character even where the page has prevented it
		if len(key) == 1 && key[0] > 0x20 {
			b.do("press "+key, input.DispatchKeyEvent(input.KeyDown).WithKey(key).WithText(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key))
			continue
		}
		b.do("press", chromedp.KeyEvent(key))
	}
}

// Window sets the size of the window.
func (b *Browser) Window(width, height int64) {
	b.t.Helper()
	b.do("window", chromedp.EmulateViewport(width, height))
}

// Dark sets the colour scheme.
func (b *Browser) Dark(dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do("scheme", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// Picture writes a picture of what the window shows.
func (b *Browser) Picture(file string) {
	b.t.Helper()
	var picture []byte
	b.do("picture", chromedp.CaptureScreenshot(&picture))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
